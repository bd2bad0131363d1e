"""Versions of blocks: which state of a block a page shows."""

from __future__ import annotations

from hashlib import blake2b


def version(*shown: object) -> str:
    """Return a short digest of what a block shows. The same data gives the same version on every machine."""
    return blake2b(repr(shown).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
