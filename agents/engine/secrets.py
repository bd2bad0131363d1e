"""The site's own secrets: they are kept out of ledgers, models and logs, wherever they come from (C20)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from agents.engine.ledger import JSON

HIDDEN = "[secret]"
"""The text that replaces a secret."""
SHORTEST = 12
"""The shortest text, in characters, that is treated as a secret: shorter ones (`postgres`) are often ordinary words."""

_known: list[str] = []


def keep_secret(texts: Iterable[str]) -> None:
    """Set the secrets to hide, replacing the earlier ones. Texts shorter than SHORTEST are ignored."""
    forms = {form for text in texts if len(text) >= SHORTEST for form in _encodings(text)}
    _known[:] = sorted(forms, key=len, reverse=True)


def _encodings(text: str) -> Iterator[str]:
    """Yield a secret as it is, as it appears in JSON text, and as it appears in a URL."""
    yield text
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield quote(text)
    yield quote(text, safe="")
    yield quote_plus(text)


def hide(text: str) -> str:
    """Return the text with every secret replaced."""
    for secret in _known:
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return text


def hide_in(value: JSON) -> JSON:
    """Replace secrets in every text of a JSON value.

    Keys are included, because those of a tool's result may come from anywhere; the engine's own never hold secrets.
    """
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, list):
        return [hide_in(item) for item in value]
    if isinstance(value, dict):
        return {hide_in(key): hide_in(item) for key, item in value.items()}
    return value


def partial_secret_length(text: str) -> int:
    """Return how many characters at the end of a text could be the beginning of a secret that continues after it."""
    longest = len(_known[0]) - 1 if _known else 0
    ends = (text[start:] for start in range(max(0, len(text) - longest), len(text)))
    return next((len(end) for end in ends if any(secret.startswith(end) for secret in _known)), 0)
