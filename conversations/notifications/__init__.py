"""Notifications: telling people by e-mail that a turn waits for them."""
