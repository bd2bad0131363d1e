"""Approvals: who may decide, checking edits, expiry, and the one function that decides."""
