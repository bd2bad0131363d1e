"""Prompts: starting a turn, stopping it, and what its owner does with a conversation."""
