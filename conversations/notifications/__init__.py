"""Notifications: e-mails to people for whom a turn is waiting."""
