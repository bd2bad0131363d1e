"""Account pages: signing in, passwords, API keys, notifications."""
