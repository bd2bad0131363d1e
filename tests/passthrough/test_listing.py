"""The list of models shows nobody what is not for them, whatever the server answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.passthrough.errors import Refused
from agents.passthrough.listing import listed

ALIASES = {"fast": "m", "quick": "secret-model"}
MODELS = [{"id": "m", "x": 1}, {"id": "secret-model"}]


def limited(body: bytes) -> bytes:
    """The list for a caller who may use `m` alone."""
    return listed(body, lambda name: name == "m", ALIASES, everything=False)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(MODELS).encode(),
        json.dumps({"data": {"secret-model": {}}}).encode(),
        json.dumps({"models": MODELS}).encode(),
        json.dumps({"data": [*MODELS, "secret-model"]}).encode(),
        json.dumps({"data": [*MODELS, {"name": "secret-model"}]}).encode(),
        json.dumps({"data": [*MODELS, {"id": ["secret-model"]}]}).encode(),
        json.dumps({"data": MODELS}).encode()[:-1],
        b"secret-model",
        b"[" * 100_000,
        b"\xff",
        b"",
    ],
)
def test_what_cannot_be_read_does_not_pass(body: bytes) -> None:
    """Except to those who may use everything: they see what the server says."""
    with pytest.raises(Refused) as refused:
        limited(body)
    assert (refused.value.status, refused.value.code) == (502, "upstream_broken")
    assert "secret" not in refused.value.message
    assert listed(body, lambda _: True, ALIASES, everything=True) == body


@pytest.mark.parametrize("more", [{}, {"object": "list"}, {"models": MODELS, "last_id": "secret-model"}])
def test_no_field_of_the_list_names_what_is_not_for_them(more: dict[str, Any]) -> None:
    shown = json.loads(limited(json.dumps({**more, "data": MODELS}).encode()))
    assert shown == {"object": "list", "data": [{"id": "m", "x": 1}, {"id": "fast", "x": 1}]}


def test_who_may_use_everything_sees_everything() -> None:
    """As it came, if no alias is to be added."""
    body = b'{ "data" : [{"id" : "other"}], "models": []}'
    assert listed(body, lambda _: True, ALIASES, everything=True) == body
    shown = json.loads(listed(json.dumps({"x": 1, "data": MODELS}).encode(), lambda _: True, ALIASES, everything=True))
    assert shown["x"] == 1
    assert [model["id"] for model in shown["data"]] == ["m", "secret-model", "fast", "quick"]
