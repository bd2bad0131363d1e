"""API keys: whom they work for, how long and for what; and that they can be read nowhere (T-57, C21)."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from conversations.accounts import keys
from conversations.accounts.keys import key_from_header, make_key
from conversations.models import ApiKey, Prompt
from conversations.prompts.start import start_conversation
from tests.agentsite.processes import wait_for
from tests.api.client import JSON, Api, error_of, said, with_key
from tests.conversations.support import asking, person

pytestmark = pytest.mark.django_db
LIST = "/api/conversations/"


def test_a_key_is_kept_as_its_hash_alone(ann: User) -> None:
    """T-57, C21: at least 128 bits, hashed, and readable in no column."""
    key, text = make_key(ann, "a program", ["read"])
    secret = text.removeprefix("agk_")
    assert len(bytes.fromhex(secret)) == 32
    assert make_key(ann, "another", ["read"])[1] != text
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM conversations_apikey")
        columns = json.dumps(cursor.fetchall(), default=str)
    assert text not in columns
    assert secret[20:] not in columns
    assert len(key.digest) == 128


def test_a_revoked_key_is_refused_at_once(ann: User, api: Api) -> None:
    """T-57: from the next request on, in every process."""
    assert api.get(LIST).status_code == 200
    ApiKey.objects.get().delete()
    response = api.get(LIST)
    assert said(response, 401) == "bad_key"
    assert response["WWW-Authenticate"] == "Bearer"


def test_an_expired_key_is_refused_and_stays_to_be_looked_at(ann: User) -> None:
    """A request with one key cannot delete another key."""
    key, text = make_key(ann, "for a day", ["read"], days=1)
    assert Api(text).get(LIST).status_code == 200
    ApiKey.objects.filter(pk=key.pk).update(expiry=timezone.now() - timedelta(seconds=1))
    assert said(Api(text).get(LIST), 401) == "bad_key"
    assert with_key(ann).get(LIST).status_code == 200
    assert ApiKey.objects.filter(pk=key.pk).exists()


def test_the_key_of_somebody_who_was_deactivated_is_refused(ann: User, api: Api) -> None:
    User.objects.filter(pk=ann.pk).update(is_active=False)
    assert said(api.get(LIST), 401) == "bad_key"


@pytest.mark.parametrize(
    "change", [lambda key: key[:-1], lambda key: key + "0", lambda key: key.upper(), lambda key: "x"]
)
def test_a_key_that_is_nearly_right_is_wrong(api: Api, change: Callable[[str], str]) -> None:
    assert said(Api(change(api.key)).get(LIST), 401) == "bad_key"


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer  x y", "Bearer \u00e9", "Basic eDp5", "Token {key}", "{key}"]
)
def test_a_header_without_a_key_is_nobodys(api: Api, header: str) -> None:
    header = header.format(key=api.key)
    assert key_from_header(header) is None
    assert Client().get(LIST, headers={"Authorization": header}).status_code == 401


def test_a_key_beats_a_session(ann: User, bob: User, client: Client) -> None:
    """C8: with the header, cookies are ignored, so that no request can be forged."""
    client.force_login(bob)
    start_conversation(ann, "Ann's")
    told = Api(with_key(ann).key, client).get(LIST).json()
    assert [each["title"] for each in told["results"]] == ["Ann's"]
    assert said(Api("agk_" + "0" * 64, client).get(LIST), 401) == "bad_key"


@pytest.mark.parametrize("known", [True, False])
def test_a_session_needs_the_csrf_token(ann: User, known: bool) -> None:
    """C8, T-47: without the token 403, and nothing is done; a key needs none."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)
    token = ""
    if known:
        client.get("/")
        page = client.get("/api/docs/?script=").text
        found = re.search(r'"X-CSRFTOKEN"\] = "(\w+)"', page)
        assert found
        token = found[1]
    response = client.post(LIST, "{}", content_type=JSON, headers={"X-CSRFToken": token})
    if known:
        assert response.status_code == 201
    else:
        assert said(response, 403) == "csrf_failed"
    assert with_key(ann).get(LIST).json()["count"] == int(known)


@pytest.mark.django_db(transaction=True)
def test_the_last_use_is_kept_to_the_minute(ann: User, api: Api, django_assert_num_queries: object) -> None:
    """The time is written in the background; the request does not wait for it."""

    def used_at() -> datetime | None:
        found: datetime | None = ApiKey.objects.get().used_at
        return found

    assert api.get(LIST).status_code == 200
    wait_for(lambda: used_at() is not None)
    first = used_at()
    assert first is not None
    header = f"Bearer {api.key}"
    with django_assert_num_queries(1):  # type: ignore[operator]
        key_from_header(header)
    assert used_at() == first
    ApiKey.objects.update(used_at=first - timedelta(seconds=61))
    key_from_header(header)
    wait_for(lambda: (used_at() or first) > first)


# Scopes


def test_a_key_does_what_its_scopes_say(ann: User, limited: Callable[..., Api]) -> None:
    """A key that may chat or decide may read, too; decisions need a scope of their own."""
    story, gate = asking(ann)
    prompt, talk = story.prompt.pk, f"{LIST}{story.conversation.pk}/prompts/"
    reads = [LIST, talk, f"/api/prompts/{prompt}/", f"/api/prompts/{prompt}/steps/", "/api/approvals/", "/api/schema/"]
    chats: list[tuple[str, object]] = [
        (LIST, {}),
        (f"/api/prompts/{prompt}/cancel/", {}),
        (f"/api/prompts/{prompt}/continue/", {}),
    ]
    chats += [(talk, {"input": "Hi."})]
    body = {"digest": gate.digest}
    decides: list[tuple[str, object]] = [(f"/api/approvals/{gate.pk}/{word}/", body) for word in ("approve", "reject")]
    decides += [("/api/approvals/decide/", [{"id": gate.pk, "decision": "approve", **body}])]

    reader = limited("read")
    assert [reader.get(path).status_code for path in reads] == [200] * len(reads)
    for path, sent in (*chats, *decides):
        assert said(reader.post(path, sent), 403) == "forbidden", path
    for path, sent in decides:
        assert "decide" in error_of(limited("chat").post(path, sent), 403)["message"]
    for path, sent in chats:
        assert "chat" in error_of(limited("decide").post(path, sent), 403)["message"]
    assert limited("chat").post(LIST).status_code == 201
    assert limited("decide").post(*decides[0]).status_code == 200
    assert Prompt.objects.count() == 1


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["read"], ["read"]),
        (["decide", "chat"], ["read", "chat", "decide"]),
        (["workflows"], ["read", "workflows"]),
        (["passthrough"], ["passthrough"]),
        (["passthrough", "read"], ["read", "passthrough"]),
        (["passthrough", "workflows"], ["read", "workflows", "passthrough"]),
    ],
)
def test_reading_comes_with_every_scope_but_that_for_models(ann: User, given: list[str], kept: list[str]) -> None:
    make_key(ann, "x", given)
    assert ApiKey.objects.get().scopes == kept


def test_a_key_for_models_alone_reads_nothing(ann: User, limited: Callable[..., Api]) -> None:
    """It is told what it lacks, wherever it asks; with `read` beside it, it may read."""
    models, both = limited("passthrough"), limited("passthrough", "read")
    story, _ = asking(ann)
    prompt, talk = story.prompt.pk, f"{LIST}{story.conversation.pk}/"
    for path in (LIST, talk, f"{talk}prompts/", f"/api/prompts/{prompt}/", "/api/usage/", "/api/schema/"):
        error = error_of(models.get(path), 403)
        assert error["code"] == "forbidden", path
        assert "lacks the scope 'read': create one that has it" in error["message"]
    assert said(models.post(f"/api/prompts/{prompt}/cancel/"), 403) == "forbidden"
    assert both.get(LIST).status_code == 200
    assert said(both.post(LIST), 403) == "forbidden"


LIMITS = ("requests_a_minute", "requests_a_day", "tokens_a_day")


def test_a_key_for_models_has_models_and_limits(ann: User) -> None:
    """Names are stripped, and each is kept once, in the order in which they were given."""
    limits = dict(zip(LIMITS, (60, 1000, 10**15), strict=True))
    make_key(ann, "x", ["passthrough"], only_models=[" b ", "a/b c", "b", "", " "], **limits)
    key = ApiKey.objects.get()
    assert key.only_models == ["b", "a/b c"]
    assert [getattr(key, limit) for limit in LIMITS] == [60, 1000, 10**15]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"scopes": ["read", "workflows"], "only_models": ["gpt"]}, "Only a key that may use the site\u2019s models"),
        ({"scopes": ["chat"], "tokens_a_day": 5}, "Only a key that may use the site\u2019s models"),
        ({"only_models": [f"m{number}" for number in range(101)]}, "Name at most 100 models; these are 101."),
        ({"only_models": ["m" * 201]}, "at most 200 characters; one has 201."),
        ({"only_models": ["a\x00b"]}, "cannot be seen"),
        ({"only_models": ["a\ud800"]}, "cannot be seen"),
        ({"only_models": ["a\u202eb"]}, "cannot be seen"),
        *[({limit: 0}, "Give a number from 1 to") for limit in LIMITS],
        *[({limit: -1}, "Give a number from 1 to") for limit in LIMITS],
        *[({limit: 10**16}, "Give a number from 1 to") for limit in LIMITS],
    ],
)
def test_models_and_limits_that_make_no_sense_are_refused_in_words(ann: User, wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(keys.BadKey, match=why) as refused:
        make_key(ann, "x", **{"scopes": ["passthrough"], **wrong})
    assert refused.value.field == list(wrong)[-1]
    assert not ApiKey.objects.exists()


def test_as_many_and_as_long_as_may_be_is_accepted(ann: User) -> None:
    names = [f"{number:0200}" for number in range(100)]
    make_key(ann, "x", ["passthrough"], only_models=names, **keys.LIMITS_MOST)
    key = ApiKey.objects.get()
    assert key.only_models == names
    assert {limit: getattr(key, limit) for limit in LIMITS} == keys.LIMITS_MOST


def test_a_key_gives_no_right_that_its_person_lacks(bob: User, ann: User) -> None:
    _, gate = asking(ann)
    assert (
        said(with_key(bob, "decide").post(f"/api/approvals/{gate.pk}/approve/", {"digest": gate.digest}), 404)
        == "not_found"
    )


@pytest.mark.parametrize(
    ("name", "scopes", "days"),
    [
        ("", ["read"], None),
        (" \x00".replace("\x00", ""), ["read"], None),
        ("x", ["admin"], None),
        ("x", ["read"], 0),
        ("x", ["read"], 40_000),
        ("x", [], None),
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(ann: User, name: str, scopes: list[str], days: int | None) -> None:
    with pytest.raises(ValueError, match=r"[.]$"):
        make_key(ann, name, scopes, days)
    assert not ApiKey.objects.exists()


def test_a_person_has_so_many_keys_that_work(ann: User, bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expired and revoked keys make room, and the limit is per user."""
    monkeypatch.setattr(keys, "KEYS_MOST", 2)
    first, second = (make_key(ann, name, ["read"])[0] for name in ("first", "second"))
    with pytest.raises(ValueError, match=r"You already have 2 keys. Revoke one"):
        make_key(ann, "third", ["read"])
    with pytest.raises(CommandError, match="Revoke one"):
        call_command("api_key", "ann")
    make_key(bob, "his", ["read"])
    ApiKey.objects.filter(pk=first.pk).update(expiry=timezone.now() - timedelta(seconds=1))
    make_key(ann, "third", ["read"])
    second.delete()
    make_key(ann, "fourth", ["read"])


# Where it must not be read


def test_a_key_is_in_no_log_and_no_answer(
    ann: User, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T-57: neither if it is valid, nor if it is wrong, nor if the site itself fails."""
    caplog.set_level(logging.DEBUG)
    api, wrong = with_key(ann), Api("agk_" + "e" * 64)
    answers = [api.get(LIST), wrong.get(LIST), api.get("/api/nothing/"), api.get("/api/prompts/9/"), wrong.post(LIST)]
    answers += [api.post(LIST, "{"), api.post(LIST, {"title": 1})]
    monkeypatch.setattr("conversations.api.conversations.start_conversation", lambda *new: 1 / 0)
    answers.append(api.post(LIST))
    assert [answer.status_code for answer in answers] == [200, 401, 404, 404, 401, 400, 400, 500]
    read = caplog.text + "".join(answer.text + str(answer.headers) for answer in answers)
    assert "division by zero" in caplog.text
    assert "division" not in answers[-1].text
    for key in (api.key, wrong.key):
        assert key not in read
        assert key[20:] not in read


# The command


def test_the_command_prints_a_new_key_and_nothing_else(ann: User) -> None:
    printed = StringIO()
    call_command("api_key", "ann", "--name", "CI", "--scopes", "chat", "--days", "7", stdout=printed)
    key = key_from_header(f"Bearer {printed.getvalue().strip()}")
    assert key
    assert (key.user, key.name, key.scopes) == (ann, "CI", ["read", "chat"])
    assert key.expiry is not None
    assert timedelta(days=6) < key.expiry - timezone.now() <= timedelta(days=7)


def test_a_key_of_the_command_has_the_scopes_it_always_had_unless_it_says_so(ann: User) -> None:
    """Scopes that were added since give a script no new power."""
    printed = StringIO()
    call_command("api_key", "ann", stdout=printed)
    key = key_from_header(f"Bearer {printed.getvalue().strip()}")
    assert key
    assert (key.scopes, key.expiry) == (["read", "chat", "decide"], None)


def test_the_command_makes_a_key_for_models(ann: User) -> None:
    printed = StringIO()
    limits = ["--requests-a-minute", "60", "--requests-a-day", "1000", "--tokens-a-day", "2000000"]
    call_command("api_key", "ann", "--scopes", "passthrough", "--models", "a/b, c", *limits, stdout=printed)
    key = key_from_header(f"Bearer {printed.getvalue().strip()}")
    assert key
    assert (key.scopes, key.only_models) == (["passthrough"], ["a/b", "c"])
    assert (key.requests_a_minute, key.requests_a_day, key.tokens_a_day) == (60, 1000, 2_000_000)


@pytest.mark.parametrize(
    "words",
    [
        ["nobody"],
        ["ann", "--scopes", "all"],
        ["ann", "--scopes", ""],
        ["ann", "--days", "0"],
        ["ann", "--models", "gpt"],
        ["ann", "--scopes", "passthrough", "--tokens-a-day", "0"],
        ["gone"],
    ],
)
def test_the_command_says_what_is_wrong(ann: User, words: list[str]) -> None:
    person("gone", is_active=False)
    with pytest.raises(CommandError):
        call_command("api_key", *words)
    assert not ApiKey.objects.exists()


# The admin


@pytest.fixture
def chief(client: Client) -> User:
    user = person("chief", is_superuser=True, is_staff=True)
    client.force_login(user)
    return user


def test_the_admin_lists_keys_without_their_hash(client: Client, chief: User, ann: User) -> None:
    key, text = make_key(ann, "<b>CI</b>", ["chat"], days=3)
    Api(text).get(LIST)
    html = client.get("/admin/conversations/apikey/").text
    for words in ("&lt;b&gt;CI&lt;/b&gt;", "ann", "read, chat", "Revoke"):
        assert words in html
    for secret in (text, key.digest, key.token_key):
        assert secret not in html
    assert "API keys" in client.get("/admin/").text


def test_the_admin_shows_models_and_limits(client: Client, chief: User, ann: User) -> None:
    """Of many models it says how many there are, and has their names behind that."""
    make_key(ann, "few", ["passthrough"], only_models=["<i>m</i>"], requests_a_minute=1, tokens_a_day=2_000_000)
    make_key(ann, "many", ["read", "passthrough"], only_models=[f"m-{number}" for number in range(12)])
    make_key(ann, "any", ["passthrough"])
    html = client.get("/admin/conversations/apikey/").text
    limits = "1 request a minute, 2,000,000 tokens a day"
    words = ("&lt;i&gt;m&lt;/i&gt;", limits, "<summary>12 models</summary>", "m-11", "all models", "read, passthrough")
    for expected in words:
        assert expected in html


def test_the_admin_revokes_a_key_after_it_asked(client: Client, chief: User, ann: User) -> None:
    key, text = make_key(ann, "CI", ["chat"])
    address = f"/admin/conversations/apikey/{key.pk}/delete/"
    page = client.get(address)
    assert page.status_code == 200
    assert key.digest not in page.text
    assert Api(text).get(LIST).status_code == 200
    assert client.post(address, {"post": "yes"}).status_code == 302
    assert Api(text).get(LIST).status_code == 401
    logged = [f"{entry.object_id} {entry.object_repr} {entry.change_message}" for entry in LogEntry.objects.all()]
    assert logged
    assert key.digest not in "".join(logged)


def test_the_admin_makes_and_changes_no_key(client: Client, chief: User, ann: User) -> None:
    key, _ = make_key(ann, "CI", ["chat"])
    for address in ("add/", f"{key.pk}/change/", f"{key.digest}/change/", f"{key.digest}/delete/"):
        response = client.post(f"/admin/conversations/apikey/{address}", {"name": "mine", "post": "yes"})
        assert response.status_code in (302, 403, 404), address
    assert ApiKey.objects.get().name == "CI"
