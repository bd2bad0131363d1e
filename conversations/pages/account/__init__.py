"""Account pages: signing in, passwords, API keys, how one is told."""
