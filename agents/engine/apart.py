"""Texts of others in what a model is told: set apart, so that none can pass for the words around it."""

from __future__ import annotations

import hashlib


def set_apart(text: str) -> str:
    """Return the text between two lines that do not occur in it, and are the same each time."""
    mark = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]
    return f"===== begin {mark} =====\n{text}\n===== end {mark} ====="
