"""How what is recorded is shown to people: the same on the pages and in the admin."""
