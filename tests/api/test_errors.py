"""The common shape of errors, whatever went wrong anywhere under /api/."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest, PermissionDenied
from django.core.signing import BadSignature
from django.http import Http404
from django.test import Client
from pytest_django import Settings

from conversations.models import Conversation, Prompt
from conversations.prompts.start import start_conversation
from tests.api.client import Api, error_of, said, with_key

pytestmark = pytest.mark.django_db
LIST = "/api/conversations/"


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete", "options", "head"])
@pytest.mark.parametrize("path", ["/api/", "/api/nothing/", "/api/prompts/x/", "/api/prompts/1", "/api/admin/../../c/"])
def test_an_address_that_is_none(client: Client, method: str, path: str) -> None:
    """For everybody, with and without a slash at the end: no redirect loses a body."""
    response = getattr(client, method)(path)
    assert response.status_code == 404
    if method != "head":
        assert said(response, 404) == "not_found"


@pytest.mark.parametrize(
    ("method", "path"),
    [("post", "/v1/moderations"), ("get", "/v1/chat/completions"), ("post", "/v1/chat/completions/"), ("get", "/v1/")],
)
def test_an_openai_client_reads_that_an_address_is_none(client: Client, method: str, path: str) -> None:
    response = getattr(client, method)(path)
    assert response.status_code == 404
    error = response.json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "unknown_address")
    assert f"{method.upper()} {path}" in error["message"]


@pytest.mark.parametrize("number", [0, 9, 2**63, 10**30])
@pytest.mark.parametrize("kind", ["conversations", "prompts", "approvals", "files"])
def test_an_id_that_is_none(api: Api, kind: str, number: int) -> None:
    assert said(api.get(f"/api/{kind}/{number}/"), 404) == "not_found"


def test_who_is_nobody_is_told_how_to_be_somebody() -> None:
    response = Client().get(LIST)
    assert said(response, 401) == "not_authenticated"
    assert response["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options"])
def test_a_method_that_is_none(api: Api, method: str) -> None:
    response = getattr(api.client, method)(LIST, headers={"Authorization": f"Bearer {api.key}"})
    assert said(response, 405) == "method_not_allowed"
    assert "GET" in response["Allow"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_a_body_that_is_no_json_by_its_type(api: Api, kind: str) -> None:
    response = api.client.post(LIST, b"title=x", content_type=kind, headers={"Authorization": f"Bearer {api.key}"})
    assert said(response, 415) == "unsupported_media_type"


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"{'title': 1}", b"\xff\xfe", b'{"title": NaN}', b'{"title": Infinity}', b'{"title": "\\ud800"}',
        b'{"\\udfff": 1}', b"[" * 100_000, b"[" * 60 + b"]" * 60, b'{"a":' * 60 + b"1" + b"}" * 60,
        b'{"n": ' + b"1" * 5000 + b"}", b"\xef\xbb\xbf{}", b'{"title": "a"} x',
    ],
)  # fmt: skip
def test_json_that_cannot_be_read(api: Api, body: bytes) -> None:
    assert said(api.post(LIST, body), 400) == "malformed"
    assert not Conversation.objects.exists()


def test_a_body_that_is_too_long(api: Api, settings: Settings) -> None:
    """The body is read no further than to the limit."""
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert said(api.post(LIST, b'{"title": "' + b"x" * most + b'"}'), 413) == "too_large"
    error = error_of(api.post(LIST, json.dumps({"title": "x" * 201})), 400)
    assert list(error["fields"]) == ["title"]


def test_a_session_with_a_form_that_is_too_long(ann: User, settings: Settings) -> None:
    """Where Django looks for a token in the body."""
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(ann)
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    form = "application/x-www-form-urlencoded"
    assert client.post(LIST, b"x" * 200, content_type=form).status_code in (400, 403, 413)


@pytest.mark.parametrize(
    "body",
    [{"title": None}, {"title": 5}, {"title": "a\x00"}, {"system_prompt": True}, {"system_prompt": 1.5},
     {"system_prompt": [1]}, {"owner": 1}, {"seq": 9}, {"system_prompt": "none such"}, {"system_prompt": 10**30}],
)  # fmt: skip
def test_fields_that_cannot_be_taken_are_named(api: Api, body: dict[str, Any]) -> None:
    error = error_of(api.post(LIST, body), 400)
    (name,) = body
    assert error["code"] == "invalid"
    assert {field.partition(".")[0] for field in error["fields"]} == {name}
    assert not Conversation.objects.exists()


@pytest.mark.parametrize("query", ["page_size=x", "page_size=-1", "page_size=1.5", "page_size=%C2%B2", "page_size=0"])
def test_a_query_that_cannot_be_taken(api: Api, query: str) -> None:
    assert list(error_of(api.get(f"{LIST}?{query}"), 400)["fields"]) == ["page_size"]


@pytest.mark.parametrize("page", ["0", "9", "x", "-1"])
def test_a_page_that_is_none(api: Api, page: str) -> None:
    assert said(api.get(f"{LIST}?page={page}"), 404) == "not_found"


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [
        (ZeroDivisionError("a secret"), 500, "internal_error"),
        (BadSignature("a secret"), 500, "internal_error"),
        (PermissionDenied("a secret"), 403, "forbidden"),
        (BadRequest("a secret"), 400, "malformed"),
        (Http404("a secret"), 404, "not_found"),
        (Prompt.DoesNotExist("a secret"), 404, "not_found"),
    ],
)
def test_what_a_view_raises(
    api: Api, monkeypatch: pytest.MonkeyPatch, raised: Exception, status: int, code: str
) -> None:
    """Nothing about an internal error is disclosed."""

    def fails(*args: Any) -> None:
        raise raised

    monkeypatch.setattr("conversations.api.conversations.paginate_together", fails)
    response = api.get(LIST)
    assert said(response, status) == code
    assert "secret" not in response.text


def test_pages_keep_their_own_errors(client: Client, ann: User) -> None:
    client.force_login(ann)
    for path in ("/nothing/", "/c/9/"):
        response = client.get(path)
        assert response.status_code == 404
        assert response["Content-Type"].startswith("text/html")


# How often


def test_a_program_that_asks_too_often_waits(ann: User, bob: User, settings: Settings) -> None:
    settings.AGENTSITE_API_REQUESTS = 3
    api, other = with_key(ann), with_key(bob)
    assert [api.get(LIST).status_code for _ in range(4)] == [200, 200, 200, 429]
    response = api.get(LIST)
    error = error_of(response, 429)
    assert error["code"] == "throttled"
    assert 1 <= int(response["Retry-After"]) == error["retry_after"] <= 61
    assert other.get(LIST).status_code == 200


def test_a_person_s_keys_and_sessions_count_together(ann: User, client: Client, settings: Settings) -> None:
    """Otherwise a second key would double the limit."""
    settings.AGENTSITE_API_REQUESTS = 3
    client.force_login(ann)
    asked = [with_key(ann).get(LIST), with_key(ann).get(LIST), client.get(LIST), with_key(ann).get(LIST)]
    assert [one.status_code for one in asked] == [200, 200, 200, 429]
    assert client.get(LIST).status_code == 429


def test_turns_are_started_less_often(ann: User, settings: Settings) -> None:
    settings.AGENTSITE_API_STARTS = 2
    api, path = with_key(ann), f"{LIST}{start_conversation(ann).pk}/prompts/"
    assert [api.post(path, {"input": "Hi."}).status_code for _ in range(3)] == [201, 409, 429]
    assert api.get(path).status_code == 200


def test_a_person_s_sessions_count_together(ann: User, settings: Settings) -> None:
    settings.AGENTSITE_API_REQUESTS = 2
    for status in (200, 200, 429):
        client = Client()
        client.force_login(ann)
        assert client.get(LIST).status_code == status


def test_who_is_nobody_is_counted_by_address(settings: Settings) -> None:
    """Without a key, or with a bad one. Headers cannot change the client's address."""
    settings.AGENTSITE_API_REQUESTS = 4
    nobody, wrong = Api(), Api("agk_wrong")
    came_to = [nobody.get(LIST), wrong.get(LIST), nobody.get(LIST), wrong.get(LIST)]
    assert [one.status_code for one in came_to] == [401] * 4
    assert nobody.get(LIST, X_Forwarded_For="192.0.2.1").status_code == 429
    assert wrong.get(LIST).status_code == 429
    assert nobody.client.get(LIST, REMOTE_ADDR="192.0.2.2").status_code == 401


def test_what_turns_text_round_is_escaped(api: Api) -> None:
    """T-45: a terminal that prints an answer shows all characters in it."""
    told = api.post(LIST, {"title": "a\u202eb\u200bc\u001b[2J"})
    assert told.json()["title"] == "a\u202eb\u200bc\u001b[2J"
    assert told.content.isascii()
    assert b"\\u202e" in told.content
    assert b"\x1b" not in told.content
