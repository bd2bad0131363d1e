"""Bytes, both ways: what the client sends is what the server gets, and the answer comes back as it left."""

from __future__ import annotations

import gzip
import json
import zlib
from itertools import chain

import pytest

from tests.agentsite.processes import wait_for
from tests.passthrough import samples
from tests.passthrough.clients import PLAIN
from tests.passthrough.site import ALIASES, UPSTREAM_KEY, Leg, Site
from tests.passthrough.upstream import EVENTS, JSON, Answer, Gate, Upstream

BODIES = {
    "white space": b' \r\n\t{ "model"\t:\r\n "m" ,  "messages" :[ ] }\n\n',
    "order of keys": b'{"z": 1, "model": "m", "a": {"z": 1, "a": 2}}',
    "names twice, further in": b'{"model": "m", "metadata": {"model": "x", "model": "y", "stream": 1, "stream": 2}}',
    "other names twice": b'{"user": "a", "model": "m", "user": "b"}',
    "big and odd numbers": b'{"model": "m", "seed": 123456789012345678901234567890, "x": [1.0, 1.50, 1e5, -0, 1E-07]}',
    "escapes": b'{"model": "m", "x": "\\u00e9\\/\\ud83c\\udf0d\\u0000", "\\u0078\\"": "\\\\\\""}',
    "an escaped model": b'{"\\u006dodel": "\\u006d", "x": 1}',
    "not ASCII": '{"model": "m", "ключ": "Grüße, 世界 🌍\u2028\u202e"}'.encode(),
    "a lone surrogate": b'{"model": "m", "x": "\\ud800"}',
    "an unknown field": b'{"model": "m", "x_of_a_later_version": {"a": [null, true, {}]}}',
    "streams": b'{"model": "m", "stream" : true , "stream_options":{"include_usage":false}}',
    "a name in a text": b'{"x": "\\"model\\": \\"z\\", ", "model": "m"}',
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_arrives_as_it_was_sent(upstream: Upstream, legs: tuple[Leg, Leg], name: str) -> None:
    upstream.answers(Answer(samples.completion()))
    answers = [leg.post(BODIES[name]) for leg in legs]
    assert [answer.body for answer in answers] == [samples.completion()] * 2
    assert [asked.body for asked in upstream.requests] == [BODIES[name]] * 2


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize(
    "body",
    [
        '{"model":"%s"}',
        ' { "messages" : [{"model":"%s"}, "model"],  "model" :\t"%s" , "user": "%s", "x": {"model": "%s"}}\n',
    ],
)
def test_an_alias_replaces_the_one_name(upstream: Upstream, leg: Leg, alias: str, body: str) -> None:
    """Not one byte of anything else. Also where it is written with escapes."""
    upstream.answers(Answer(samples.completion()))
    for written in (alias, "".join(f"\\u{ord(character):04x}" for character in alias)):
        parts = body.split("%s")
        at = 2 if len(parts) > 2 else 1
        sent = "".join(chain(*zip(parts, [written] * (len(parts) - 1) + [""], strict=True))).encode()
        assert leg.post(sent).status == 200
        got = upstream.requests[-1].body
        before = written.join(parts[:at]).encode()
        after = written.join(parts[at:]).encode()
        assert got.startswith(before[:-1])
        assert got.endswith(after[1:])
        name = got[len(before) - 1 : len(got) - len(after) + 1]
        assert json.loads(name) == ALIASES[alias]


def test_answers_come_back_as_they_left(upstream: Upstream, legs: tuple[Leg, Leg]) -> None:
    """What is no JSON, too, and an answer without a body."""
    for answer in (
        Answer(bytes(range(256)) * 300, headers=[("content-type", "application/octet-stream")]),
        Answer(b'{"broken": ', headers=[JSON]),
        Answer(b"", headers=[JSON]),
        Answer([b"a", b"b" * 100_000, b"c"], headers=[JSON]),
        Answer(b"<html>Bad gateway</html>", 502, [("content-type", "text/html")]),
        Answer(b"", 204, [], raw=[b"HTTP/1.1 204 No Content\r\nx-request-id: r\r\n\r\n"]),
    ):
        upstream.answers(answer)
        straight, through = (leg.post(PLAIN) for leg in legs)
        assert (through.status, through.body) == (straight.status, straight.body)
        assert through.headers["content-type"] == straight.headers["content-type"]
        assert len(upstream.requests) == 2


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [("gzip", gzip.compress(samples.completion())), ("deflate", zlib.compress(samples.completion()))],
)
def test_compressed_answers_stay_compressed(upstream: Upstream, site: Site, encoding: str, packed: bytes) -> None:
    """The client asked for that. What they used is counted all the same."""
    upstream.answers(Answer(packed, headers=[JSON, ("content-encoding", encoding), ("vary", "accept-encoding")]))
    key = site.key()
    answer = site.leg(key).post(PLAIN, accept_encoding=f"{encoding}, br")
    assert answer.body == packed
    assert (answer.headers["content-encoding"], answer.headers["vary"]) == (encoding, "accept-encoding")
    assert encoding in (upstream.requests[0].header("accept-encoding") or "")
    wait_for(lambda: site.usage(key)["answers"] == 1)
    assert site.usage(key) == {**samples.COUNTED, "requests": 1, "answers": 1, "estimated": 0}


def test_a_compressed_stream_arrives_event_by_event(upstream: Upstream, site: Site) -> None:
    """And with its usage in the last but one event."""
    packer = zlib.compressobj(wbits=31)
    pieces = [packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH) for event in samples.chunks(usage=True)]
    pieces.append(packer.flush())
    gates = [Gate() for _ in pieces]
    upstream.answers(Answer(chain(*zip(gates, pieces, strict=True)), headers=[EVENTS, ("content-encoding", "gzip")]))
    key = site.key()
    with site.leg(key).streaming(PLAIN) as answer:
        raw = answer.iter_raw()
        for gate, piece in zip(gates, pieces, strict=True):
            gate.open()
            got = b""
            while len(got) < len(piece):
                got += next(raw)
            assert got == piece
    wait_for(lambda: site.usage(key)["answers"] == 1)
    assert site.usage(key) == {**samples.COUNTED, "requests": 1, "answers": 1, "estimated": 0}


def test_each_byte_of_a_stream_comes_alone(upstream: Upstream, legs: tuple[Leg, Leg]) -> None:
    """Events are split inside a character of four bytes, inside `\\n\\n` and inside `[DONE]`."""
    whole = b"".join(samples.chunks("ü🌍", usage=True))
    made = []
    for leg in legs:
        upstream.answers(Answer([whole[at : at + 1] for at in range(len(whole))], headers=[EVENTS]))
        assert leg.post(PLAIN).body == whole
        with leg.sdk() as client:
            events = client.chat.completions.create(model="m", messages=[], stream=True)
            made.append([event.model_dump() for event in events])
    assert made[0] == made[1]
    assert "".join(event["choices"][0]["delta"].get("content") or "" for event in made[1][:-1]) == "ü🌍"


def test_half_a_character_is_passed_on_at_once(upstream: Upstream, leg: Leg) -> None:
    """Nothing waits for the end of a character, a line or an event."""
    event = samples.sse({"choices": [{"delta": {"content": "🌍"}}]})
    middle = event.index("🌍".encode()) + 2
    gate = Gate()
    upstream.answers(Answer([event[:middle], gate, event[middle:]], headers=[EVENTS]))
    with leg.streaming(PLAIN) as answer:
        raw = answer.iter_raw()
        got = b""
        while len(got) < middle:
            got += next(raw)
        assert got == event[:middle]
        gate.open()
        assert b"".join(raw) == event[middle:]


PASSED_BACK = {
    "x-request-id": "req_42",
    "openai-processing-ms": "17",
    "openai-version": "2020-10-01",
    "x-ratelimit-remaining-requests": "9",
    "x-should-retry": "false",
    "retry-after": "3",
    "retry-after-ms": "2500",
    "etag": '"a"',
    "x-unknown": "kept",
}
DROPPED = {
    "set-cookie": "session=1; path=/",
    "keep-alive": "timeout=5",
    "proxy-authenticate": "Basic",
    "connection": "x-of-this-hop",
    "x-of-this-hop": "1",
    "trailer": "x-later",
    "upgrade": "h2c",
}


@pytest.mark.parametrize("kind", [JSON, EVENTS])
def test_headers_of_an_answer(upstream: Upstream, leg: Leg, kind: tuple[str, str]) -> None:
    """Those for the client pass; those of one connection, and cookies, do not. Streams are not to be held back."""
    upstream.answers(Answer([b"data: {}\n\n"], headers=[kind, *PASSED_BACK.items(), *DROPPED.items()]))
    headers = leg.post(PLAIN).headers
    assert {name: headers[name] for name in PASSED_BACK} == PASSED_BACK
    assert headers["content-type"] == kind[1]
    for name in ("set-cookie", "proxy-authenticate", "x-of-this-hop", "trailer", "upgrade"):
        assert name not in headers
    if kind == EVENTS:
        assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-cache", "no")
    added = {"cache-control", "x-accel-buffering"} if kind == EVENTS else set()
    ours = {"content-type", "transfer-encoding", "server", "date"}
    assert {name.lower() for name in headers} <= {*PASSED_BACK, *added, *ours}


def test_headers_of_a_request(upstream: Upstream, leg: Leg) -> None:
    """The server gets the client's own, with the site's key instead of theirs, and nothing that lets anybody in."""
    upstream.answers(Answer(samples.completion()))
    own = {"user_agent": "me/1", "openai_beta": "x=1", "x_stainless_lang": "python", "idempotency_key": "once"}
    leg.post(
        PLAIN,
        **own,
        cookie="sessionid=secret1",
        proxy_authorization="Basic secret2",
        te="trailers",
        connection="keep-alive, x-mine",
        x_mine="secret3",
    )
    asked = upstream.requests[0]
    for name, value in own.items():
        assert asked.header(name.replace("_", "-")) == value
    assert asked.header("authorization") == f"Bearer {UPSTREAM_KEY}"
    assert asked.header("host") == upstream.url.split("/")[2]
    assert asked.header("accept-encoding") in (None, "identity")
    for secret in (b"secret", leg.key.encode(), b"cookie", b"\r\nte:", b"x-mine"):
        assert secret not in asked.head.lower()


@pytest.mark.parametrize(
    ("accepted", "sent"),
    [
        ("gzip, deflate, br, zstd", "gzip, deflate"),
        ("br;q=1.0, GZIP;q=0.5", "gzip"),
        ("gzip;q=0, deflate; q=0.0", "identity"),
        ("br", "identity"),
        ("identity", "identity"),
    ],
)
def test_encodings_of_an_answer(upstream: Upstream, leg: Leg, accepted: str, sent: str) -> None:
    """Of those that the client takes, the ones in which the site can count; never one that the client does not take."""
    upstream.answers(Answer(samples.completion()))
    leg.post(PLAIN, accept_encoding=accepted)
    assert upstream.requests[0].header("accept-encoding") == sent


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 14", "Transfer-Encoding: chunked"),
        ("Content-Length: 14", "Content-Length: 3"),
        ("Content-Length: +14",),
        ("Content-Length: -1",),
        ("Transfer-Encoding: xchunked",),
        ("Content-Length: 14", "X-A: a\0b"),
        ("Content-Length: 14", "X-A: a\rTransfer-Encoding: chunked"),
        ("Content-Length: 14", "Transfer-Encoding : chunked"),
    ],
)
def test_no_request_hides_in_another(upstream: Upstream, site: Site, leg: Leg, headers: tuple[str, ...]) -> None:
    """A head that two servers would read differently is refused as a whole."""
    upstream.answers(Answer(samples.completion()))
    hidden = f"GET /v1/models HTTP/1.1\r\nAuthorization: Bearer {leg.key}\r\n\r\n".encode()
    chunked = b"e\r\n" + PLAIN + b"\r\n0\r\n\r\n" + hidden
    for body in (PLAIN + hidden, chunked):
        key = f"Authorization: Bearer {leg.key}"
        assert site.door.ask("POST /v1/chat/completions", key, *headers, body=body).status == 400
    assert upstream.requests == []


def test_a_body_in_chunks_arrives_whole(upstream: Upstream, leg: Leg) -> None:
    """With its length: some servers take nothing else."""
    upstream.answers(Answer(samples.completion()))
    with leg.sdk() as client:
        answer = client._client.post(
            f"{leg.url}/chat/completions",
            content=iter([PLAIN[:5], PLAIN[5:]]),
            headers={"content-type": "application/json", **leg.bearer},
        )
    assert answer.status_code == 200
    assert upstream.requests[0].body == PLAIN


def test_the_query_passes(upstream: Upstream, legs: tuple[Leg, Leg]) -> None:
    """As it was written: some servers have parameters there, such as `api-version`."""
    upstream.answers(Answer(samples.completion()))
    for leg in legs:
        assert leg.post(PLAIN, "/chat/completions?api-version=2%2F3&x=%20+%C3%A4&&y").status == 200
    assert upstream.requests[0].target == upstream.requests[1].target
