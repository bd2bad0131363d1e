"""What programs get: the types of responses and events, each of which makes its own value of what is on record."""
