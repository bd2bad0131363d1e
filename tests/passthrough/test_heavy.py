"""Much at once: large bodies, large answers, many streams, and requests and answers cut at every byte.

The site's memory is measured, and a page is asked for meanwhile.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from tests.agentsite.processes import PATIENCE_SECONDS, wait_for
from tests.attacks.doors import MB
from tests.passthrough import samples
from tests.passthrough.clients import PAGE_SECONDS, PLAIN, begun, ended, page_seconds
from tests.passthrough.site import Leg, Site
from tests.passthrough.upstream import EVENTS, Answer, Gate, Upstream

LIMIT = 20 * MB
READERS = 10


def memory(site: Site) -> int:
    """The bytes that the web process has in memory."""
    lines = Path(f"/proc/{site.door.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


@contextmanager
def pages_meanwhile(site: Site) -> Iterator[list[float]]:
    """Ask for a page again and again while the block runs; none takes longer than PAGE_SECONDS."""
    took: list[float] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            took.append(page_seconds(site))

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        try:
            yield took
        finally:
            done.set()
        asking.result()
    assert max(took) < PAGE_SECONDS


def more_than(took: list[float], count: int) -> bool:
    """Whether there were more pages than so many."""
    return len(took) > count


def body_of(size: int) -> bytes:
    """A body with this many bytes, in which there is much to read."""
    start, end = b'{"messages": ["', b'"], "model": "fast"}'
    return start + (b'", "\\u00fc\\"' * (size // 11))[: size - len(start) - len(end) - 1] + b"." + end


def test_a_body_of_20_mb(upstream: Upstream, site: Site) -> None:
    """It arrives as it was sent, alias and all. Pages answer meanwhile, and the memory is given back."""
    body = body_of(LIMIT)
    assert len(body) == LIMIT
    expected = body.replace(b'"fast"', b'"real-model"')
    leg = site.leg()
    upstream.answers(Answer(samples.completion()))
    assert leg.post(PLAIN).status == 200
    before = memory(site)
    with pages_meanwhile(site):
        for _ in range(3):
            assert leg.post(body).status == 200
            assert upstream.requests[-1].body == expected
    assert memory(site) - before < 4 * LIMIT


def test_one_byte_more(upstream: Upstream, site: Site, leg: Leg) -> None:
    """413 in the provider's shape before anything is sent, from anybody; a stranger may not send 4 MB either."""
    for path in ("/chat/completions", "/completions", "/responses", "/embeddings"):
        for key, size in ((leg.key, LIMIT + 1), ("none", LIMIT + 1), ("none", 4 * MB)):
            sent = Leg("site", leg.url, key).send("POST", path, b"", content_length=str(size))
            assert (sent.status, sent.error["code"]) == (413, "too_large")
    assert upstream.requests == []


def test_slow_readers_of_100_mb(upstream: Upstream, site: Site, leg: Leg) -> None:
    """The server has to wait as well: of each of them, less than 1 MB piles up in between."""
    piece = bytes(range(256)) * 256
    count = 100 * MB // len(piece)
    upstream.script = lambda _: Answer((piece for _ in range(count)), headers=[EVENTS])
    before = memory(site)
    with ExitStack() as stack:
        client, *_ = [stack.enter_context(begun(site, leg)) for _ in range(READERS)]
        upstream.received(READERS)
        client.recv(1)
        sent = [0, -1]
        with pages_meanwhile(site) as took:
            while sent[-1] != sent[-2] or len(took) < 20:  # until the server gets nothing off any more
                sent.append(sum(asked.sent for asked in upstream.requests))
                wait_for(partial(more_than, took, len(took) + 2))
        assert sent[-1] < READERS * 30 * MB  # buffers of the system, twice
        assert memory(site) - before < READERS * MB
        got, tail = 1, b""
        while not tail.endswith(b"0\r\n\r\n"):
            data = client.recv(MB)
            assert data
            got, tail = got + len(data), (tail + data)[-16:]
        assert got > 100 * MB
        wait_for(lambda: any(asked.answered for asked in upstream.requests))
        assert memory(site) - before < READERS * MB


async def test_200_streams_at_once(upstream: Upstream, site: Site, leg: Leg) -> None:
    """All are open at the same time, each comes whole, and pages answer meanwhile."""
    events = samples.chunks(usage=True)
    whole = b"".join(events)
    gate = Gate()
    upstream.script = lambda _: Answer([*events[:5], gate, *events[5:]], headers=[EVENTS])

    headers = leg.bearer | {"content-type": "application/json"}

    async def stream(session: aiohttp.ClientSession) -> bytes:
        async with session.post(f"{leg.url}/chat/completions", data=PLAIN, headers=headers) as answer:
            assert answer.status == 200
            return await answer.read()

    def watch() -> None:
        try:
            with pages_meanwhile(site) as took:
                wait_for(lambda: len(upstream.requests) == 200)
                wait_for(lambda: all(asked.sent > len(b"".join(events[:5])) for asked in upstream.requests))
                wait_for(partial(more_than, took, len(took) + 2))
        finally:
            gate.open()

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        watching = asyncio.create_task(asyncio.to_thread(watch))
        answers = await asyncio.gather(*(stream(session) for _ in range(200)))
        await watching
    assert {hashlib.sha256(answer).digest() for answer in answers} == {hashlib.sha256(whole).digest()}


def test_requests_that_are_cut_at_every_byte(upstream: Upstream, site: Site, leg: Leg) -> None:
    """In the head or in the body: none reaches the server, and none shows in the log; see `running`."""
    upstream.answers(Answer(samples.completion()))
    headers = ("Host: x", f"Authorization: Bearer {leg.key}", f"Content-Length: {len(PLAIN)}")
    whole = "\r\n".join(["POST /v1/chat/completions HTTP/1.1", *headers, "", ""]).encode() + PLAIN
    for end in range(len(whole)):
        with socket.create_connection(("127.0.0.1", site.door.port), timeout=PATIENCE_SECONDS) as client:
            client.sendall(whole[:end])
            if end % 2:
                client.shutdown(socket.SHUT_WR)
    assert leg.post(PLAIN).status == 200
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_answers_that_are_cut_at_every_byte(upstream: Upstream, leg: Leg, framing: str) -> None:
    """A whole answer comes only of a whole answer: otherwise it is 502, or cut as well."""
    body = b'{"a": "\xc3\xbc"}'
    length = b"content-length: %d\r\n\r\n%s" % (len(body), body)
    chunked = b"transfer-encoding: chunked\r\n\r\n5\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (
        body[:5],
        len(body) - 5,
        body[5:],
    )
    whole = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + (length if framing == "length" else chunked)
    for end in range(1, len(whole)):
        upstream.answers(Answer(raw=[whole[:end]]))
        got, how = ended(leg, PLAIN)
        assert how or b"upstream_unreachable" in got, whole[:end]
        assert body.startswith(got) or b"upstream_unreachable" in got
    upstream.answers(Answer(raw=[whole]))
    assert ended(leg, PLAIN) == (body, "")
