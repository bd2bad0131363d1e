"""WebSockets of clients that send without end and read nothing, against a running server whose memory is measured."""

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.agentsite.processes import connect, free_port, started, variables, wait_for
from tests.attacks.doors import MB, Door

SERVER = """
import asyncio, sys
from agentsite import server
from agentsite.webs import listen

async def application(scope, receive, send):
    if scope["path"] != "/connecting":
        await send({"type": "websocket.accept"})
    if scope["path"] != "/reading":
        await asyncio.Event().wait()
    while (message := await receive())["type"] != "websocket.disconnect":
        print(message.get("text"), flush=True)

listener = listen("127.0.0.1", int(sys.argv[1]))
server.PatientServer(application=application, listener=listener, limits=None).run()
"""
"""A server whose application never accepts at /connecting, reads nothing at /deaf, and all at /reading."""
UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: " + "A" * 22 + "==",
)
TEXT, PING = 0x1, 0x9


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def door(log: Path) -> Iterator[Door]:
    port = free_port()
    with started("-c", SERVER, str(port), environment=variables(log.parent), log=log) as server:
        connect(port).close()
        yield Door(port, server.pid, {})


def frame(kind: int, payload: bytes) -> bytes:
    """A frame as a client sends it, masked with zeros."""
    length = struct.pack("!B", 0x80 | len(payload)) if len(payload) < 126 else struct.pack("!BH", 0xFE, len(payload))
    return bytes([0x80 | kind]) + length + bytes(4) + payload


def opened(door: Door, path: str) -> socket.socket:
    client = door.open(f"GET {path}", *UPGRADE)
    if path != "/connecting":
        assert client.recv(12) == b"HTTP/1.1 101"
    return client


def test_pongs_do_not_pile_up(door: Door, log: Path) -> None:
    """20 MB of pings, of a client that reads nothing: what it is sent stays small, and the socket goes on."""
    with opened(door, "/reading") as client:
        client.sendall(frame(TEXT, b"begin"))
        wait_for(lambda: "begin" in log.read_text())
        memory = door.memory
        for _ in range(20):
            client.sendall(frame(PING, b"p" * 125) * (MB // 131))
        client.sendall(frame(TEXT, b"end"))
        wait_for(lambda: "end" in log.read_text())
        assert door.memory - memory < 4 * MB


def test_who_reads_gets_each_pong(door: Door) -> None:
    with opened(door, "/reading") as client, client.makefile("rb") as answers:
        while answers.readline() != b"\r\n":
            pass
        for number in range(300):
            client.sendall(frame(PING, b"%3d" % number))
            assert answers.read(5) == b"\x8a\x03%3d" % number


@pytest.mark.parametrize("path", ["/deaf", "/connecting"])
def test_messages_that_nobody_takes_are_not_kept(door: Door, path: str) -> None:
    """40 MB of messages to an application that is busy, or has not yet accepted: the connection is closed."""
    with opened(door, path) as client:
        memory, sent = door.memory, 0
        while sent < 40 * MB and door.send(client, piece := frame(TEXT, b"m" * 4000) * 100):
            sent += len(piece)
        assert sent < 10 * MB  # what the buffers of the system hold, at most
        with suppress(ConnectionError):
            while client.recv(65536):
                pass
        assert door.memory - memory < 4 * MB


def test_a_burst_is_taken(door: Door, log: Path) -> None:
    with opened(door, "/reading") as client:
        client.sendall(b"".join(frame(TEXT, b"m%d." % number) for number in range(30)))
        wait_for(lambda: "m29." in log.read_text())
