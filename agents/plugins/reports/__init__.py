"""Files that an agent writes for people to keep."""
