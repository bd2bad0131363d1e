"""Interfaces: the protocols by which the engine reaches the outside."""
