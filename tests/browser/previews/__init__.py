"""A conversation with a file of each kind, some of them hostile."""
