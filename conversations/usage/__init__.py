"""Usage: totals of tokens and money, and the quotas of each person."""
