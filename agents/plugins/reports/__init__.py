"""Reports: files that an agent writes for people to keep."""
