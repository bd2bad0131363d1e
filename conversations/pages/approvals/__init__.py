"""Approvals in the chat: one card, or all that wait on one sheet."""
