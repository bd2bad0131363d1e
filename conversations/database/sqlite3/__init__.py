"""The database backend for SQLite: Django's, which waits for the write lock in another way."""
