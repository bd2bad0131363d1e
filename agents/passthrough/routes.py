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


def is_for_models(scope: dict[str, Any]) -> bool:
    """Whether a request is for the model server, by its method and path alone; all others are for the site."""
    path: str = scope["path"]
    if scope["method"] == "POST":
        return path.startswith(ROOT) and path.removeprefix(ROOT) in POSTED
    return scope["method"] == "GET" and (path == ROOT + MODELS or path.startswith(f"{ROOT}{MODELS}/"))


def route(scope: dict[str, Any]) -> Route:
    """Return where a request for the model server leads.

    Raises Refused if it names a model in a way that might lead elsewhere.
    """
    rest: str = scope["path"].removeprefix(ROOT)
    if not rest.startswith(f"{MODELS}/"):
        return Route(rest)
    name = rest.removeprefix(f"{MODELS}/")
    raw: str = scope["raw_path"].decode("ascii")
    plain = raw.startswith(f"{ROOT}{MODELS}/")  # with an encoded slash, it could become a part of the server's name
    if not plain or not _NAME.fullmatch(name) or {".", ".."} & set(name.split("/")):
        raise Refused(404, "model_not_found", "There is no model of this name.", param="model")
    return Route(raw.removeprefix(ROOT), name)


def check_query(query: bytes) -> None:
    """Raise Refused if the query names a model, too: servers differ in which of the two they would use."""
    text = unquote(query.decode("latin-1")).replace(";", "&")  # which some servers still split at
    if "model" in {name.casefold() for name, _ in parse_qsl(text, keep_blank_values=True)}:
        said = "Name the model in the body alone, not in the address."
        raise Refused(400, "model_in_query", said, param="model")
