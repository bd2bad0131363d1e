"""The REST API: a program can do everything a page can."""
