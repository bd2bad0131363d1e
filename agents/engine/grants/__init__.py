"""Grants: a person's own words that calls like one they approved may run without asking them again."""
