"""Summaries of tables of data that are too long to read."""
