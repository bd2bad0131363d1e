"""Verification of ledgers: the rules each turn keeps, the chain of digests, and stored rows against their steps."""
