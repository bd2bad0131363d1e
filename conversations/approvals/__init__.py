"""Approvals: who may decide, and the one function that decides."""
