"""Clients that others wrote, each installed in an environment of its own, against `/v1` of a running site."""
