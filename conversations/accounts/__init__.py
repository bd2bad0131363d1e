"""People's accounts: signing in, passwords, sessions, keys, and being told by e-mail."""
