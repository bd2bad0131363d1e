"""Charts and tables for people to look at. What they are is here; the pages draw them."""
