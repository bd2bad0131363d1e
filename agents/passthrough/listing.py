"""The list of models, as a caller may use it: without those that are not for them, and with the site's aliases."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from agents.engine.ledger import JSON
from agents.providers.common.values import as_object, as_objects

MOST = 16 * 1024 * 1024
"""Bytes of a list. The longest known ones have some hundred kilobytes."""


def listed(body: bytes, allows: Callable[[str], bool], aliases: Mapping[str, str]) -> bytes:
    """Return the server's list of models for this caller: as it came, if nothing in it is to change."""
    try:
        whole = as_object(json.loads(body))
    except (ValueError, RecursionError):
        return body
    models = as_objects(whole.get("data"))
    shown = [model for model in models if allows(str(model.get("id")))]
    known: dict[JSON, dict[str, JSON]] = {str(model.get("id")): model for model in shown}
    shown += [{**known[name], "id": alias} for alias, name in aliases.items() if name in known and alias not in known]
    return body if shown == models else json.dumps({**whole, "data": shown}).encode()
