"""Clients that others wrote, as they come from a package index, against `/v1` of a running site."""
