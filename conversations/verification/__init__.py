"""Whether a ledger is what it must be: rules over a turn's steps, and what is stored against its steps."""

from conversations.verification.rules import LedgerProblem, problems_of

__all__ = ["LedgerProblem", "problems_of"]
