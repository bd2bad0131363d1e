"""Approvals: who may decide, what an edit is checked against, and the one function that decides."""
