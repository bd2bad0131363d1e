"""The web server and clients that take little, or nothing, of what waits for them."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPResponse
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect as open_socket

from tests.agentsite.processes import PATIENCE_SECONDS, connect, free_port, started, variables, wait_for

BODY_MOST = 100_000
"""Bytes of a request that the server takes."""
LONGEST = 600_000
"""Characters of a frame of a large page."""
SERVER = f"""
import asyncio, sys
from agentsite import server
from agentsite.webs import listen

server.PATIENCE_SECONDS = 1.5

async def talk(receive, send):
    await send({{"type": "websocket.accept"}})
    async def sends(letter):
        for _ in range(3):
            await send({{"type": "websocket.send", "text": letter * {LONGEST}}})
    while (message := await receive())["type"] != "websocket.disconnect":
        if message["type"] == "websocket.receive":
            await asyncio.gather(*map(sends, message["text"]))

async def application(scope, receive, send):
    if scope["type"] == "websocket":
        return await talk(receive, send)
    await receive()
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    gone = asyncio.ensure_future(receive())
    while not gone.done():
        await send({{"type": "http.response.body", "body": b"x" * 100_000, "more_body": True}})
        await asyncio.sleep(0)
    print("gone", flush=True)

listener = listen("127.0.0.1", int(sys.argv[1]))
class Limits:
    def most(self, method, target):
        return {BODY_MOST}

    def waits(self, target):
        return False

server.PatientServer(application=application, listener=listener, limits=Limits()).run()
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server") / "log"


@pytest.fixture(scope="module")
def port(log: Path) -> Iterator[int]:
    """A server that has 1.5 s of patience, and an application that sends without end."""
    port = free_port()
    with started("-c", SERVER, str(port), environment=variables(log.parent), log=log):
        connect(port).close()
        yield port


def test_who_takes_nothing_is_let_go(port: int, log: Path) -> None:
    """The connection ends, and what was sent for it with it (T-42)."""
    with connect(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: log.read_text().count("gone") == 1)
        with pytest.raises(ConnectionResetError):
            read_all(client)


def read_all(client: socket.socket) -> None:
    """To the end that the server makes."""
    while client.recv(1_000_000):
        pass


def test_who_takes_little_is_not(port: int, log: Path) -> None:
    """A slow connection that takes something now and then, for three times as long (T-42)."""
    before = log.read_text().count("gone")
    with connect(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        until = time.monotonic() + 4.5
        while time.monotonic() < until:
            assert client.recv(200_000)
            time.sleep(0.1)  # the client is slow
        assert log.read_text().count("gone") == before


def test_frames_are_as_long_as_pages(port: int) -> None:
    """Whatever is sent beside them, and each whole."""
    with open_socket(f"ws://127.0.0.1:{port}/", max_size=None) as client:
        client.send("ab")
        frames = [client.recv(timeout=PATIENCE_SECONDS) for _ in range(6)]
        assert sorted(map(str, frames)) == ["a" * LONGEST] * 3 + ["b" * LONGEST] * 3


def test_what_pages_say_is_short(port: int) -> None:
    """While long frames go out as well: more is refused unread (T-58)."""
    with open_socket(f"ws://127.0.0.1:{port}/", max_size=None) as client:
        client.send("a")
        client.send("b" * 5000)
        with suppress(ConnectionClosed):
            while True:  # to the end that the server makes
                assert client.recv(timeout=PATIENCE_SECONDS) == "a" * LONGEST


def test_a_program_is_told_as_of_all_that_goes_wrong(port: int) -> None:
    """Below /api/ the refusal of a body that is too long is an error in the one shape; elsewhere it is a sentence."""
    answers = {}
    for path in ("/api/conversations/", "/apiary/"):
        with connect(port) as client:
            client.sendall(f"POST {path} HTTP/1.1\r\nHost: here\r\nContent-Length: {2 * BODY_MOST}\r\n\r\n".encode())
            answer = HTTPResponse(client)
            answer.begin()
            answers[path] = answer.status, answer.headers["Content-Type"], answer.read().decode()
    said = "This request is too large for the site. Send less, or send it in parts."
    error = {"error": {"code": "too_large", "message": said}}
    assert answers["/api/conversations/"] == (413, "application/json", json.dumps(error))
    assert answers["/apiary/"] == (413, "text/plain; charset=utf-8", said)


@pytest.mark.parametrize("declared", [True, False])
def test_a_body_that_is_too_long_is_refused_and_not_kept(port: int, declared: bool) -> None:
    """It is answered while it is still being sent; what a site takes is taken."""
    with connect(port) as client:
        head = f"Content-Length: {2 * BODY_MOST}" if declared else "Transfer-Encoding: chunked"
        client.sendall(f"POST / HTTP/1.1\r\nHost: here\r\n{head}\r\n\r\n".encode())
        for _ in range(0 if declared else 3):
            client.sendall(b"%x\r\n%s\r\n" % (BODY_MOST // 2, b"x" * (BODY_MOST // 2)))
        assert client.recv(1000).startswith(b"HTTP/1.1 413 ")
    with connect(port) as client:
        client.sendall(f"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: {BODY_MOST}\r\n\r\n".encode())
        client.sendall(b"x" * BODY_MOST)
        assert client.recv(1000).startswith(b"HTTP/1.1 200 ")
