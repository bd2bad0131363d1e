"""The addresses under `/v1` that are passed on, and where at the model server they lead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

from agents.passthrough.errors import Refused

ROOT = "/v1"
POSTED = ("/chat/completions", "/completions", "/responses", "/embeddings")
"""Where a body asks for a model."""
MODELS = "/models"
_NAME = re.compile(r"[\w.:@+~,= -]+(/[\w.:@+~,= -]+)*")
"""The name of a model in a path, such as `meta-llama/Llama-3.1-8B`. Nothing in it leads elsewhere at the server."""


@dataclass(frozen=True)
class Route:
    """Where a request leads: the path after the server's base URL, and the model if the path names one."""

    path: str
    model: str = ""


def route(scope: dict[str, Any]) -> Route | None:
    """Return where a request leads; None if it is not for the model server, but for the site. Only the path decides.

    Raises Refused if it names a model in a way that might lead elsewhere.
    """
    path: str = scope["path"]
    if scope["type"] != "http" or not path.startswith(f"{ROOT}/"):
        return None
    rest = path.removeprefix(ROOT)
    if scope["method"] == "POST":
        return Route(rest) if rest in POSTED else None
    if scope["method"] != "GET" or not rest.startswith(MODELS):
        return None
    if rest == MODELS:
        return Route(rest)
    name = rest.removeprefix(f"{MODELS}/")
    if name == rest or not name:
        return None
    if not _NAME.fullmatch(name) or {".", ".."} & set(name.split("/")):
        raise Refused(404, "model_not_found", "There is no model of this name.", param="model")
    raw: bytes = scope["raw_path"]
    return Route(raw.decode("ascii").removeprefix(ROOT), name)


def check_query(query: bytes) -> None:
    """Raise Refused if the query names a model, too: servers differ in which of the two they would use."""
    names = {name.casefold() for name, _ in parse_qsl(unquote(query.decode("latin-1")), keep_blank_values=True)}
    if "model" in names:
        said = "Name the model in the body alone, not in the address."
        raise Refused(400, "model_in_query", said, param="model")
