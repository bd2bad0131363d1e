"""A site on which everything is named, said and done in nasty texts: its `app`, and what its people and model did."""
