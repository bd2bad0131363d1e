"""Verification of ledgers: the rules each turn keeps, the chain of digests, and stored rows against their steps."""

from conversations.verification.rules import LedgerProblem, problems_of

__all__ = ["LedgerProblem", "problems_of"]
