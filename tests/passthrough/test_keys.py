"""Keys: who gets in, what a key may do, and what is counted for it."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from tests.agentsite.processes import wait_for
from tests.passthrough import samples
from tests.passthrough.clients import PLAIN
from tests.passthrough.site import UPSTREAM_KEY, Key, Leg, Raw, Site
from tests.passthrough.upstream import EVENTS, Answer, Upstream

CALLS = (
    ("GET", "/models", b""),
    ("GET", "/models/m", b""),
    ("POST", "/chat/completions", PLAIN),
    ("POST", "/embeddings", PLAIN),
)


def refused(upstream: Upstream, leg: Leg, status: int, code: str, *headers: tuple[str, str]) -> None:
    """Every address says so, in the provider's shape, and nothing gets to the server."""
    upstream.answers(Answer(samples.completion()))
    for method, path, body in CALLS:
        answer = leg.send(method, path, body, **dict(headers))
        assert (answer.status, answer.error["code"]) == (status, code)
        assert (answer.headers["www-authenticate"] == "Bearer") == (status == 401)
        for secret in (leg.key, UPSTREAM_KEY):
            assert secret not in answer.body.decode() + str(answer.headers)
    assert upstream.requests == []


STRANGERS = {
    "nothing": "",
    "no scheme": "{key}",
    "another scheme": "Basic {key}",
    "a part of it": "Bearer {part}",
    "more than it": "Bearer {key}x",
    "two": "Bearer {key}, Bearer {key}",
    "the site's own key": f"Bearer {UPSTREAM_KEY}",
    "not ASCII": "Bearer \xe4",
    "very long": "Bearer " + "x" * 5000,
    "its hash": "Bearer {hash}",
}


@pytest.mark.parametrize("name", STRANGERS)
def test_strangers_do_not_get_in(upstream: Upstream, site: Site, name: str) -> None:
    key = site.key()
    digest = site.console(f"ApiKey.objects.get(pk={key.pk}).digest")
    sent = STRANGERS[name].format(key=key.text, part=key.text[:-1], hash=digest)
    refused(upstream, site.leg(key), 401, "invalid_api_key", ("authorization", sent))


@pytest.mark.parametrize(
    "expression",
    [
        "ApiKey.objects.filter(pk={pk}).delete()",
        "ApiKey.objects.filter(pk={pk}).update(expiry=timezone.now() - timedelta(seconds=1))",
        "User.objects.filter(pk={user}).update(is_active=False)",
    ],
)
def test_a_key_that_is_no_longer_good(upstream: Upstream, site: Site, expression: str) -> None:
    """Revoked, expired, of a person who was deactivated: while it was in use, and in another process."""
    key = site.key()
    leg = site.leg(key)
    upstream.answers(Answer(samples.completion()))
    assert leg.post(PLAIN).status == 200
    site.console(expression.format(pk=key.pk, user=key.user))
    wait_for(lambda: leg.post(PLAIN).status == 401)
    refused(upstream, leg, 401, "invalid_api_key")


def test_a_session_is_no_key(upstream: Upstream, site: Site) -> None:
    """A page elsewhere that makes a browser ask `/v1` gets nothing: cookies count for nothing there."""
    session = site.console("new_session('ann')")
    leg = Leg("site", f"{site.url}/v1", "none")
    refused(upstream, leg, 401, "invalid_api_key", ("cookie", f"sessionid={session}"))
    refused(upstream, leg, 401, "invalid_api_key", ("cookie", f"sessionid={session}"), ("authorization", ""))


@pytest.mark.parametrize("scopes", [(), ("read",), ("read", "chat", "decide", "workflows")])
def test_a_key_without_the_scope(upstream: Upstream, site: Site, scopes: tuple[str, ...]) -> None:
    refused(upstream, site.leg(site.key(scopes=scopes)), 403, "missing_scope")


def test_a_key_for_models_alone_does_nothing_else(site: Site, leg: Leg) -> None:
    """Not under /api/, whatever it asks for."""
    bearer = f"Authorization: Bearer {leg.key}"
    for request in ("GET /api/conversations/", "GET /api/usage/", "GET /api/me/", "GET /api/approvals/"):
        assert site.door.ask(request, bearer).status in (401, 403, 404), request
    posted = site.door.ask(
        "POST /api/conversations/", bearer, "Content-Type: application/json", "Content-Length: 2", body=b"{}"
    )
    assert posted.status in (401, 403)


@pytest.mark.parametrize("models", [["real-model"], ["fast"]])
def test_a_key_for_some_models(upstream: Upstream, site: Site, models: list[str]) -> None:
    """By the server's name or by an alias, which are the same model; others are not even seen."""
    leg = site.leg(site.key(only_models=models))
    upstream.answers(Answer(samples.completion()))
    for name in ("real-model", "fast"):
        assert leg.post(b'{"model": "%s"}' % name.encode()).status == 200
    assert [json.loads(asked.body)["model"] for asked in upstream.requests] == ["real-model"] * 2
    for name in ("other", "quoted", "real-model ", "Real-model", "real-model/x"):
        answer = leg.post(b'{"model": "%s"}' % name.encode())
        assert (answer.status, answer.error["code"]) == (403, "model_not_found")
    assert len(upstream.requests) == 2
    upstream.answers(Answer(samples.models("real-model", "other")))
    listed = json.loads(leg.send("GET", "/models").body)["data"]
    assert {model["id"] for model in listed} == {"real-model", "fast"}
    assert all(model["x_ctx"] == 1 for model in listed)
    assert leg.send("GET", "/models/other").error["code"] == "model_not_found"
    assert len(upstream.requests) == 1


def test_an_alias_is_listed_and_described(upstream: Upstream, leg: Leg) -> None:
    """The list is the server's own, with the aliases of what is in it."""
    upstream.answers(Answer(samples.models("real-model", "other")))
    with leg.sdk() as client:
        assert sorted(model.id for model in client.models.list()) == ["fast", "other", "real-model"]
        upstream.answers(Answer(b"{}"))
        leg.send("GET", "/models/fast")
    assert upstream.requests[0].target == "/v1/models/real-model"


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ({"requests_a_minute": 2}, "rate_limit_exceeded"),
        ({"requests_a_day": 2}, "quota_exceeded"),
        ({"tokens_a_day": 30}, "quota_exceeded"),
    ],
)
@pytest.mark.parametrize("whose", ["key", "person"])
def test_limits(upstream: Upstream, site: Site, limit: dict[str, int], code: str, whose: str) -> None:
    """Of a key, and of a person with all keys together. The SDK understands when to come again."""
    key = site.key()
    row = f"ApiKey.objects.filter(pk={key.pk}).update" if whose == "key" else "Quota.objects.create"
    owner = {} if whose == "key" else {"user_id": key.user}
    site.console(f"str({row}(**{owner | limit!r}))")
    leg = site.leg(key)
    upstream.answers(Answer(samples.completion()))
    with leg.sdk() as client:
        for _ in range(2):
            client.chat.completions.create(model="m", messages=[])
        with pytest.raises(openai.RateLimitError) as limited:
            client.chat.completions.create(model="m", messages=[])
    assert limited.value.code == code
    assert 1 <= int(limited.value.response.headers["retry-after"]) <= (60 if "minute" in next(iter(limit)) else 86_400)
    assert len(upstream.requests) == 2
    assert site.leg(site.key()).post(PLAIN).status == 200  # another person's are their own
    wait_for(lambda: site.usage(key)["answers"] == 2)
    assert site.usage(key)["requests"] == 2


ANSWERS: dict[str, tuple[str, Answer, dict[str, int]]] = {
    "chat": ("/chat/completions", Answer(samples.completion()), samples.COUNTED),
    "chat, streamed": ("/chat/completions", Answer(samples.chunks(usage=True), headers=[EVENTS]), samples.COUNTED),
    "responses": ("/responses", Answer(samples.encoded(samples.response())), samples.COUNTED),
    "responses, streamed": ("/responses", Answer(samples.response_events(), headers=[EVENTS]), samples.COUNTED),
    "completions": ("/completions", Answer(samples.legacy()), samples.COUNTED),
    "embeddings": ("/embeddings", Answer(samples.embeddings(as_base64=True)), {"input_tokens": 4}),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_counted(upstream: Upstream, site: Site, name: str) -> None:
    """As the server says, under its own name of the model."""
    path, answer, counts = ANSWERS[name]
    key = site.key()
    upstream.answers(answer)
    assert site.leg(key).post(b'{"model": "fast"}', path).status == 200
    wait_for(lambda: site.usage(key)["answers"])
    nothing = dict.fromkeys(samples.COUNTED, 0)
    assert site.usage(key, "real-model") == {**nothing, **counts, "requests": 1, "answers": 1, "estimated": 0}


def test_what_is_estimated(upstream: Upstream, site: Site) -> None:
    """A stream whose server says nothing: a token is four bytes, and is marked as an estimate."""
    key = site.key()
    upstream.answers(Answer(samples.chunks("word" * 25), headers=[EVENTS]))
    body = b'{"model": "m", "stream": true}'
    assert site.leg(key).post(body).status == 200
    wait_for(lambda: site.usage(key)["answers"])
    used = site.usage(key)
    assert (used["estimated"], used["input_tokens"], used["output_tokens"]) == (1, len(body) // 4, 25)


def test_errors_of_the_server_use_no_tokens(upstream: Upstream, site: Site) -> None:
    key = site.key()
    upstream.answers(Answer(samples.error("No."), 429))
    assert site.leg(key).post(PLAIN).status == 429
    wait_for(lambda: site.usage(key)["requests"])
    assert site.usage(key)["answers"] == 0


def test_no_refusal_repeats_the_key(upstream: Upstream, site: Site) -> None:
    """Whatever is wrong with a request that has a good key."""
    key: Key = site.key(only_models=["m"], requests_a_day=1)
    leg = site.leg(key)
    upstream.answers(Answer(samples.completion()))
    sent: list[tuple[str, str, bytes, dict[str, str]]] = [
        ("POST", "/chat/completions", b"{", {}),
        ("POST", "/chat/completions", b'{"model": "%s"}' % key.text.encode(), {}),
        ("POST", "/chat/completions?model=m", PLAIN, {}),
        ("POST", "/chat/completions", PLAIN, {"content_encoding": "gzip"}),
        ("POST", f"/{key.text}", PLAIN, {}),
        ("GET", f"/models/{key.text}", b"", {}),
        ("GET", "/models/..", b"", {}),
        ("DELETE", "/models", b"", {}),
        ("POST", "/chat/completions", PLAIN, {"content_length": "99999999"}),
        ("POST", "/chat/completions", PLAIN, {"authorization": f"Basic {key.text}"}),
        ("POST", "/chat/completions", PLAIN, {}),
        ("POST", "/chat/completions", PLAIN, {}),
    ]
    statuses = []
    for method, path, body, headers in sent:
        answer: Raw = leg.send(method, path, body, **headers)
        told: Any = answer.body.decode() + str(answer.headers)
        statuses.append(answer.status)
        if key.text not in path + body.decode():
            assert key.text not in told, (method, path)
        assert UPSTREAM_KEY not in told
    assert {400, 401, 403, 404, 413, 415, 429} <= set(statuses), statuses
