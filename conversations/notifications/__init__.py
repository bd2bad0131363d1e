"""Notifications: telling people and their programs of what waits and what has happened."""
