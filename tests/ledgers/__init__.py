"""Ledgers as earlier versions of the site recorded them, each with the outputs it folds to. Nothing rewrites them."""
