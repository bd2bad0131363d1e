"""Accounts: names, API keys, sessions, presence, sign-in throttling and the default group."""
