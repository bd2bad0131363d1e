"""Mappings: what a workflow is given of the payload of a webhook, field by field.

An entry is `{"path": "pull_request.title"}`, a place in the payload, with names and, in lists, numbers from 0, joined
by dots; or `{"value": ...}`, the same each time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from agents.engine.ledger import JSON
from agents.engine.schema import plain_json
from conversations.models import Payload
from conversations.prompts.startable import InvalidInput, Startable

PATH_MOST = 300
"""Characters of a path."""
NONE_YET = "No payload has come yet. Send one to the address of this trigger."
NO_JSON = "The payload is not JSON, so nothing can be taken from it. Let the sender send application/json."


class NotThere(Exception):
    """A payload without anything at this path. The message names the first part that is missing."""

    def __init__(self, path: str, part: str) -> None:
        super().__init__(f"The payload has no `{path}`" + ("." if part == path else f": `{part}` is missing."))


def value_at(payload: JSON, path: str) -> JSON:
    """Return what is at this path. Raises NotThere."""
    here, gone = payload, []
    for part in path.split("."):
        gone.append(part)
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, list) and re.fullmatch(r"[0-9]{1,6}", part) and int(part) < len(here):
            here = here[int(part)]
        else:
            raise NotThere(path, ".".join(gone))
    return here


def read_payload(content: bytes) -> JSON:
    """Return the payload as JSON. Raises InvalidInput."""
    try:
        value: JSON = from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput({"": [NO_JSON]}) from error
    return value


def input_from(mapping: Mapping[str, Any], payload: Payload | None) -> dict[str, JSON]:
    """Return the input that this payload gives a workflow. Raises InvalidInput with the fields that find nothing."""
    if payload is None:
        raise InvalidInput({"": [NONE_YET]})
    return applied(mapping, read_payload(bytes(payload.content)))


def applied(mapping: Mapping[str, Any], payload: JSON) -> dict[str, JSON]:
    """Return the input that this JSON gives a workflow. Raises InvalidInput with the fields that find nothing."""
    found: dict[str, JSON] = {}
    wrong: dict[str, list[str]] = {}
    for name, entry in mapping.items():
        try:
            found[name] = value_at(payload, entry["path"]) if "path" in entry else entry["value"]
        except NotThere as error:
            wrong[name] = [str(error)]
    if wrong:
        raise InvalidInput(wrong)
    return found


def check(mapping: Mapping[str, Any], found: Startable) -> None:
    """Check a mapping, as far as that is possible without a payload. Raises InvalidInput by field.

    An empty one is accepted: nobody has mapped anything yet, and what comes meanwhile fails, and can be started again.
    """
    wrong: dict[str, list[str]] = {}
    fields, required = found.schema.get("properties", {}), found.schema.get("required", [])
    for name, entry in mapping.items():
        if name not in fields:
            wrong[name] = [f"{found.title} has no such field."]
        elif not (isinstance(entry, dict) and len(entry) == 1 and ("path" in entry or "value" in entry)):
            wrong[name] = ['Give {"path": "..."}, a place in the payload, or {"value": ...}.']
        elif "path" in entry and not _is_path(entry["path"]):
            wrong[name] = ["A path is names and numbers joined by dots, such as pull_request.title."]
        elif "value" in entry and (why := _not_json(entry["value"])):
            wrong[name] = [why]
    if mapping:
        wrong |= {
            name: ["This field is required: say where it comes from."] for name in required if name not in mapping
        }
    if wrong:
        raise InvalidInput(wrong)


def _not_json(value: object) -> str:
    """Return why this cannot be stored as JSON; "" if it can."""
    try:
        plain_json(value, "the value")
    except (TypeError, ValueError) as error:
        return f"This is not JSON: {error}."
    return ""


def _is_path(path: object) -> bool:
    return isinstance(path, str) and len(path) <= PATH_MOST and all(part.strip() for part in path.split("."))
