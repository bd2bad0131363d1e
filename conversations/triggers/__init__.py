"""Triggers: turns that start by themselves. Their schedules, what becomes of each time that one is due, their pages."""
