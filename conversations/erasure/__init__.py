"""Erasure: taking a conversation, the content of a step, or a person out of the record."""
