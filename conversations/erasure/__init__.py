"""Erasure: how a conversation, the content of a step, or a person is taken out of the record."""
