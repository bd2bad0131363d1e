"""Prompts: starting, continuing, repeating and stopping turns, and managing the list of conversations."""
