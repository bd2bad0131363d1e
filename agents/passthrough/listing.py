"""The list of models, as a caller may use it: without those that are not for them, and with the site's aliases."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from agents.engine.ledger import JSON
from agents.passthrough.errors import Refused
from agents.providers.common.values import as_object

MOST = 1024 * 1024
"""Bytes of a list that is read. The longest known ones have some hundred kilobytes, and this many take 60 ms."""


def listed(body: bytes, allows: Callable[[str], bool], aliases: Mapping[str, str], *, everything: bool) -> bytes:
    """Return the server's list of models for this caller: as it came, if nothing in it is to change.

    `everything`: the caller may use all models, and so may see whatever the server says. Others see the models that
    they may use and nothing besides, because some servers have fields with the names of all. Raises Refused (502) if
    what is not for them cannot be told apart.
    """
    try:
        whole = as_object(json.loads(body))
    except (ValueError, RecursionError):
        whole = {}
    models = whole.get("data")
    if not (isinstance(models, list) and all(isinstance(as_object(model).get("id"), str) for model in models)):
        if everything:
            return body
        raise Refused(502, "upstream_broken", "The model server\u2019s list of models cannot be read.")
    shown = [model for model in models if everything or allows(model["id"])]
    known: dict[JSON, dict[str, JSON]] = {model["id"]: model for model in shown}
    shown += [{**known[name], "id": alias} for alias, name in aliases.items() if name in known and alias not in known]
    if everything:
        return body if shown == models else json.dumps({**whole, "data": shown}).encode()
    return json.dumps({"object": "list", "data": shown}).encode()
