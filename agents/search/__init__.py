"""One search under blueprints and memory, the same on every database: a table of words, written when a row is saved."""
