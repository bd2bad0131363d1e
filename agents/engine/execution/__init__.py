"""Execution: how one call of a tool goes through its gate to its result."""
