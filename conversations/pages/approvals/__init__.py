"""Approval pages of the chat: one card, or all waiting ones on one sheet."""
