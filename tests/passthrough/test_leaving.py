"""Whoever leaves in the middle, the client, the server or the key: the other side learns of it at once."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import httpx2
import openai
import pytest

from tests.agentsite.processes import wait_for
from tests.passthrough import samples
from tests.passthrough.clients import PAGE_SECONDS, PLAIN, STREAM, begun, ended, page_seconds, reset
from tests.passthrough.site import Key, Leg, Site
from tests.passthrough.upstream import EVENTS, Answer, Gate, Received, Upstream

SECONDS = 5.0
"""Soon, on a machine that also runs a browser: without being told, each of these would be waited for without end."""


def left_after(asked: Received, since: float) -> float:
    """How long after `since` the client of a request went away."""
    wait_for(lambda: asked.left_at)
    assert asked.left_at
    return asked.left_at - since


@pytest.mark.parametrize("leave", [socket.socket.close, reset])
def test_a_client_that_leaves_in_a_stream(
    upstream: Upstream, site: Site, leave: Callable[[socket.socket], None]
) -> None:
    """The server can stop at once; what was said until then is counted, as an estimate."""
    key = site.key()
    events = samples.chunks("word " * 100)
    upstream.answers(Answer([*events[:200], Gate(), *events[200:]], headers=[EVENTS]))
    client = begun(site, site.leg(key))
    got = b""
    while got.count(b"data: ") < 150:
        got += client.recv(65536)
    leave(client)
    assert left_after(upstream.received(), time.monotonic()) < SECONDS
    wait_for(lambda: site.usage(key)["answers"])
    used = site.usage(key)
    assert (used["requests"], used["answers"], used["estimated"]) == (1, 1, 1)
    assert 150 // 4 - 1 <= used["output_tokens"] <= 200 / 4, "what the client had read, and at most what there was"


@pytest.mark.parametrize("body", [PLAIN, STREAM])
def test_a_client_that_leaves_before_the_first_byte(upstream: Upstream, site: Site, body: bytes) -> None:
    """The server has read the question, so that is counted."""
    key = site.key()
    upstream.answers(Answer(samples.completion(), before=Gate()))
    client = begun(site, site.leg(key), body)
    asked = upstream.received()
    client.close()
    assert left_after(asked, time.monotonic()) < SECONDS
    wait_for(lambda: site.usage(key)["answers"])
    used = site.usage(key)
    assert (used["requests"], used["estimated"], used["output_tokens"]) == (1, 1, 0)
    assert used["input_tokens"] == len(body) // 4


def test_a_client_that_leaves_with_the_usage_in_hand(upstream: Upstream, site: Site) -> None:
    """Counted as the server said, not estimated."""
    key = site.key()
    *events, done = samples.chunks(usage=True)
    upstream.answers(Answer([*events, Gate(), done], headers=[EVENTS]))
    with begun(site, site.leg(key)) as client:
        got = b""
        while b'"total_tokens"' not in got:
            got += client.recv(65536)
    wait_for(lambda: site.usage(key)["answers"])
    assert site.usage(key) == {**samples.COUNTED, "requests": 1, "answers": 1, "estimated": 0}


EVENTS_SENT = samples.chunks()[:5]
BROKEN = {
    "a stream": Answer(EVENTS_SENT, headers=[EVENTS], breaks=True),
    "a stream, in an event": Answer([*EVENTS_SENT, b"data: {"], headers=[EVENTS], breaks=True),
    "a whole body": Answer(raw=[b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"]),
    "a stream, in a chunk": Answer(
        raw=[b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n9\r\ndata"]
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_server_that_breaks_in_the_middle(upstream: Upstream, site: Site, direct: Leg, name: str) -> None:
    """The client sees as much, and that it is not all. Nobody invents an end, and what there was is counted."""
    key = site.key()
    upstream.answers(BROKEN[name])
    straight, through = (ended(leg, STREAM) for leg in (direct, site.leg(key)))
    assert through[0] == straight[0]
    assert (bool(through[1]), bool(straight[1])) == (True, True)
    assert b"[DONE]" not in through[0]
    wait_for(lambda: site.usage(key)["answers"])
    assert site.usage(key)["estimated"] == 1


def test_the_sdk_sees_that_a_stream_broke(upstream: Upstream, legs: tuple[Leg, Leg]) -> None:
    """It raises the same as without the site."""
    upstream.answers(BROKEN["a stream"])
    said = []
    for leg in legs:
        with leg.sdk() as client:
            stream = client.chat.completions.create(model="m", messages=[], stream=True)
            with pytest.raises((httpx2.RemoteProtocolError, openai.APIConnectionError)) as broken:
                list(stream)
        said.append(broken.type)
    assert said[0] == said[1]


def test_an_answer_that_ends_with_its_connection(upstream: Upstream, legs: tuple[Leg, Leg]) -> None:
    """Old servers send no length: that is a whole answer, and no break."""
    whole = samples.completion()
    upstream.answers(Answer(raw=[b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + whole]))
    assert [ended(leg, PLAIN) for leg in legs] == [(whole, "")] * 2


def test_a_server_that_never_answers(upstream: Upstream, site: Site, legs: tuple[Leg, Leg]) -> None:
    """The client's own patience decides, and ends the request at the server. Pages answer meanwhile."""
    for leg in legs:
        upstream.answers(Answer(before=Gate()))
        with leg.sdk(timeout=1.0) as client:
            with pytest.raises(openai.APITimeoutError):
                client.chat.completions.create(model="m", messages=[])
            assert left_after(upstream.received(), time.monotonic()) < SECONDS
    with begun(site, legs[1]):
        upstream.received(2)
        assert page_seconds(site) < PAGE_SECONDS


def test_the_head_of_a_stream_comes_before_its_first_event(upstream: Upstream, legs: tuple[Leg, Leg]) -> None:
    """A model that thinks long: the client has the status and the headers at once."""
    for leg in legs:
        gate = Gate()
        upstream.answers(Answer([gate, *samples.chunks()], headers=[EVENTS, ("x-request-id", "r")]))
        with leg.streaming(STREAM) as answer:
            assert (answer.status_code, answer.headers["x-request-id"]) == (200, "r")
            gate.open()
            assert b"".join(answer.iter_raw()) == b"".join(samples.chunks())


GONE: dict[str, Callable[[Key], str]] = {
    "revoked": lambda key: f"ApiKey.objects.filter(pk={key.pk}).delete()",
    "deactivated": lambda key: f"User.objects.filter(pk={key.user}).update(is_active=False)",
    "expired": lambda key: f"ApiKey.objects.filter(pk={key.pk}).update(expiry=timezone.now())",
    "without its scope": lambda key: f"ApiKey.objects.filter(pk={key.pk}).update(scopes=['read'])",
}


@pytest.mark.parametrize("how", GONE)
def test_a_key_that_goes_in_the_middle_of_a_stream(upstream: Upstream, site: Site, how: str) -> None:
    """In another process: the stream is cut and ends at the server."""
    key = site.key()
    events = samples.chunks()
    upstream.answers(Answer([*events[:3], Gate()], headers=[EVENTS]))
    with begun(site, site.leg(key)) as client:
        got = b""
        while events[2].strip() not in got:
            got += client.recv(65536)
        site.console(GONE[how](key))
        began = time.monotonic()
        while piece := client.recv(65536):
            got += piece
        assert time.monotonic() - began < SECONDS
    assert not got.endswith(b"0\r\n\r\n")
    assert left_after(upstream.received(), began) < SECONDS
    wait_for(lambda: site.usage(key)["answers"])


def test_a_key_that_goes_while_it_is_busy(upstream: Upstream, site: Site) -> None:
    """Its other requests keep it known for a while: that it was looked up just before must not add to the time."""
    key = site.key()
    leg = site.leg(key)
    stream = Answer([*samples.chunks()[:3], Gate()], headers=[EVENTS])
    upstream.script = lambda asked: stream if asked.body == STREAM else Answer(samples.completion())

    def ask_until(seconds: float) -> None:
        while time.monotonic() - since < seconds:
            assert leg.post(PLAIN).status == 200

    since = time.monotonic()
    ask_until(2.0)
    with begun(site, leg) as client:
        client.recv(65536)
        ask_until(2.6)
        site.console(GONE["expired"](key))
        began = time.monotonic()
        while client.recv(65536):
            pass
        assert time.monotonic() - began < 1.2


def test_a_key_that_goes_while_the_server_thinks(upstream: Upstream, site: Site) -> None:
    """There is still room to say why."""
    key = site.key()
    upstream.answers(Answer(samples.completion(), before=Gate()))
    with begun(site, site.leg(key), PLAIN) as client:
        asked = upstream.received()
        site.console(GONE["revoked"](key))
        began = time.monotonic()
        said = client.recv(65536)
        assert time.monotonic() - began < SECONDS
    assert said.startswith(b"HTTP/1.1 401 ")
    assert b"invalid_api_key" in said
    assert left_after(asked, began) < SECONDS
