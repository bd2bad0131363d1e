"""Charts and tables for people. This plugin defines what they contain; the pages draw them."""
