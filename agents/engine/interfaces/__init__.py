"""Interfaces: the protocols through which the engine reaches the outside."""
