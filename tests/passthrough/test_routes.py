"""Only the path and the method decide what goes to the model server, and no path leads elsewhere at it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest

from agents.passthrough.errors import Refused
from agents.passthrough.routes import check_query, is_for_models, route


def scope(method: str, target: str) -> dict[str, Any]:
    """The part of an ASGI scope that says what is asked for."""
    return {"type": "http", "method": method, "path": unquote(target), "raw_path": target.encode()}


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/responses"),
        ("POST", "/v1/embeddings"),
        ("GET", "/v1/models"),
        ("GET", "/v1/models/gpt-6.1-sol"),
        ("GET", "/v1/models/meta-llama/Llama-3.1-8B"),
        ("GET", "/v1/models/meta-llama%2FLlama-3.1-8B"),
        ("GET", "/v1/models/ft:gpt:org::a@b"),
    ],
)
def test_what_goes_to_the_model_server(method: str, target: str) -> None:
    asked = scope(method, target)
    assert is_for_models(asked)
    assert route(asked).path == target.removeprefix("/v1")


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", "/v1/chat/completions"),
        ("PUT", "/v1/chat/completions"),
        ("post", "/v1/chat/completions"),
        ("POST", "/v1/chat/completions/"),
        ("POST", "/v1//chat/completions"),
        ("POST", "/V1/chat/completions"),
        ("POST", "/v1/chat/completions/x"),
        ("POST", "/v1/models"),
        ("DELETE", "/v1/models/x"),
        ("GET", "/v1/modelsx"),
        ("GET", "/v1/responses/resp_1"),
        ("GET", "/v1/files"),
        ("GET", "/v1/system-prompts/1"),
        ("GET", "/v1"),
        ("GET", "/"),
        ("POST", "/api/chat/completions"),
    ],
)
def test_what_is_for_the_site(method: str, target: str) -> None:
    assert not is_for_models(scope(method, target))


@pytest.mark.parametrize(
    "name",
    ["", "..", "../files", "..%2ffiles", "a/../../files", "a/./b", "a//b", "a/", "a%3Fb", "a%23b", "a%5Cb", "%00"],
)
def test_no_name_of_a_model_leads_elsewhere_at_the_server(name: str) -> None:
    asked = scope("GET", f"/v1/models/{name}")
    assert is_for_models(asked)
    with pytest.raises(Refused) as refused:
        route(asked)
    assert (refused.value.status, refused.value.code) == (404, "model_not_found")


@pytest.mark.parametrize("start", ["/v1%2Fmodels/", "/v1%2Fmodels%2F", "/%761/models/", "/v1/models%2F"])
def test_no_path_becomes_a_part_of_the_servers_name(start: str) -> None:
    asked = scope("GET", f"{start}x@evil.test/y")
    assert is_for_models(asked)
    with pytest.raises(Refused):
        route(asked)


def test_one_percent_sign_too_many_stays_a_name() -> None:
    """What the server decodes is what was looked at here."""
    with pytest.raises(Refused):
        route(scope("GET", "/v1/models/%252e%252e%252ffiles"))


@pytest.mark.parametrize("query", ["model=b", "a=1&MODEL=b", "mod%65l=b", "model", "x=1&%6Dodel=", "a=1;model=b"])
def test_a_model_in_the_query_is_refused(query: str) -> None:
    with pytest.raises(Refused) as refused:
        check_query(query.encode())
    assert (refused.value.status, refused.value.code) == (400, "model_in_query")


@pytest.mark.parametrize("query", ["", "api-version=2026-01-01", "limit=5&after=model", "models=1"])
def test_any_other_query_passes(query: str) -> None:
    check_query(query.encode())
