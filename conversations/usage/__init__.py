"""Usage: the tokens and money that answers came to, and how much one person may ask."""
