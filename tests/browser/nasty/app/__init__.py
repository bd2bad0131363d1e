"""What is run in nasty texts: every text that a tool or workflow may give is one of them."""
