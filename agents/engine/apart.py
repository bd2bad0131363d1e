"""Texts of others in what a model is told: set apart, so that none can pass for the words around it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_LINE_ENDS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
"""What JSON leaves as it is, though a line may end there."""


def set_apart(text: str) -> str:
    """Return the text between two lines that do not occur in it, and are the same each time."""
    mark = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]
    return f"===== begin {mark} =====\n{text}\n===== end {mark} ====="


def on_one_line(value: Any) -> str:
    """Return the value as JSON that is one line, whatever texts are in it."""
    return json.dumps(value, ensure_ascii=False).translate(_LINE_ENDS)
