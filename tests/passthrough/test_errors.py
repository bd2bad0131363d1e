"""Errors of the model server pass as they are, and clients try again exactly as they would without the site."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import openai
import pytest

from tests.passthrough import samples
from tests.passthrough.clients import PLAIN
from tests.passthrough.site import UPSTREAM_KEY, Leg, running
from tests.passthrough.upstream import JSON, Answer, Upstream

OK = Answer(samples.completion())
STATUSES = (400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504, 529)


@pytest.mark.parametrize("status", STATUSES)
def test_an_error_passes_as_it_is(upstream: Upstream, legs: tuple[Leg, Leg], status: int) -> None:
    """Status, bytes and the SDK's own class for it; 401 of the server means the site's key, and passes, too."""
    body = samples.error(f"Scripted {status}.", f"code_{status}")
    upstream.answers(Answer(body, status, [JSON, ("x-request-id", f"req_{status}")]))
    said = []
    for leg in legs:
        raw = leg.post(PLAIN)
        assert (raw.status, raw.body, raw.headers["x-request-id"]) == (status, body, f"req_{status}")
        with leg.sdk() as client, pytest.raises(openai.APIStatusError) as failed:
            client.chat.completions.create(model="m", messages=[])
        error = failed.value
        said.append((type(error), error.status_code, error.code, error.request_id, error.message))
    assert said[0] == said[1]


def again(status: int, **headers: str) -> Answer:
    return Answer(b"{}", status, [JSON, *((name.replace("_", "-"), value) for name, value in headers.items())])


CUT = Answer([b"{"], breaks=True)
RETRIES: dict[str, tuple[tuple[Answer, ...], int, float]] = {
    "429 with milliseconds": ((again(429, retry_after_ms="30"), OK), 2, 0.03),
    "429 with seconds": ((again(429, retry_after="0.05"), OK), 2, 0.05),
    "500": ((again(500, retry_after_ms="1"), OK), 2, 0),
    "not to be repeated": ((again(500, x_should_retry="false"), OK), 1, 0),
    "to be repeated": ((again(400, x_should_retry="true", retry_after_ms="1"), OK), 2, 0),
    "400": ((again(400), OK), 1, 0),
    "401": ((again(401), OK), 1, 0),
    "for ever": ((again(503, retry_after_ms="1"),), 4, 0),
    "far too late": ((again(429, retry_after="100000"), OK), 1, 0),
    "an answer that breaks": ((CUT, CUT, OK), 3, 0),
}
"""Answers, how often the SDK asks for them, and how many seconds that takes at least."""


@pytest.mark.parametrize("name", RETRIES)
def test_clients_try_again_as_without_the_site(upstream: Upstream, legs: tuple[Leg, Leg], name: str) -> None:
    """As often, and no sooner. The site itself repeats nothing: who knows what a request did."""
    answers, asked, least = RETRIES[name]
    ended = []
    for leg in legs:
        upstream.answers(*answers)
        began = time.monotonic()
        with leg.sdk(max_retries=3) as client:
            try:
                client.chat.completions.create(model="m", messages=[])
                ended.append("answered")
            except openai.APIError as error:
                ended.append(type(error).__name__)
        assert time.monotonic() - began >= least
        counts = [request.header("x-stainless-retry-count") for request in upstream.requests]
        assert counts == [str(number) for number in range(asked)], leg.name
    assert ended[0] == ended[1]


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 200 OK\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nx: \xff\0y\r\n\r\n"]
)
def test_a_server_that_hangs_up_or_speaks_something_else(upstream: Upstream, leg: Leg, said: bytes) -> None:
    """502, and the request was sent once: nobody knows what it did."""
    upstream.answers(Answer(raw=[said]))
    answer = leg.post(PLAIN)
    assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")
    assert len(upstream.requests) == 1


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    """502 in the provider's shape, to everything; the SDK tries again by itself. Pages do not notice."""
    with Upstream() as gone:
        pass
    with running(tmp_path, gone.url) as site:
        leg = site.leg()
        for method, path, body in (
            ("GET", "/models", b""),
            ("POST", "/responses", PLAIN),
            ("POST", "/embeddings", PLAIN),
        ):
            answer = leg.send(method, path, body)
            assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")
            assert gone.url.encode() not in answer.body
        with leg.sdk() as client, pytest.raises(openai.InternalServerError):
            client.models.list()
        assert site.door.ask("GET /login/").status == 200


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("streams", [b"", b', "stream": true'])
def test_a_server_that_repeats_the_key_gives_nothing_away(
    upstream: Upstream, leg: Leg, status: int, streams: bytes
) -> None:
    """It is the site's, and must not reach the client: in the body, in parts of it, or in a header."""
    told = samples.error(f"Incorrect API key provided: {UPSTREAM_KEY}. And Bearer {UPSTREAM_KEY}", "invalid_api_key")
    pieces = [told[at : at + 7] for at in range(0, len(told), 7)]
    packed = ("content-encoding", "gzip")
    for body, encoding in ((told, ()), (pieces, ()), (gzip.compress(told), (packed,))):
        upstream.answers(Answer(body, status, [JSON, ("x-key", UPSTREAM_KEY), ("x-request-id", "r"), *encoding]))
        answer = leg.post(b'{"model": "m"' + streams + b"}")
        assert answer.status == status
        assert UPSTREAM_KEY.encode() not in answer.body
        assert UPSTREAM_KEY not in str(answer.headers)
        assert b"Incorrect API key provided" in answer.body
        assert answer.error["code"] == "invalid_api_key"
        assert leg.key.encode() not in answer.body
