"""Outgoing webhooks: what is told to the addresses that people and administrators entered, and how it gets there."""
