"""The REST API: a program can do what a page can, but for giving stars."""
