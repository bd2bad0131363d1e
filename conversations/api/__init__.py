"""The HTTP API: everything a page can do, a program can."""
