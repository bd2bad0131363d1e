"""What a body holds: its bytes are on the disk once, and its room is given back as soon as nobody needs them."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.agentsite.processes import wait_for
from tests.attacks.doors import MB, Door, answer, site
from tests.attacks.locked import WAITS_A_SECOND, locked

ROOM_FOR_FOUR_MB = WAITS_A_SECOND.replace("from agentsite import web", "from agentsite import bodies, web").replace(
    "web.run()", "bodies.ORDINARY_TOGETHER = 4_000_000\nweb.run()"
)
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with site(tmp_path_factory.mktemp("held"), "-c", ROOM_FOR_FOUR_MB) as door:
        yield door


def test_a_stream_holds_no_body(door: Door) -> None:
    """Ten streams, each asked for with 2 MB: their answers go on, and the room is free for others."""
    ann = door.people["ann"]
    length = f"Content-Length: {2 * MB}"
    with ExitStack() as stack:
        for _ in range(10):
            stream = f"GET /api/conversations/{ann.conversation}/events/"
            client = stack.enter_context(door.open(stream, ann.bearer, length, body=b"x" * 2 * MB))
            assert client.recv(12) == b"HTTP/1.1 200"
        wait_for(lambda: door.disk < MB)
        body = json.dumps({"input": "hello", "key": "k" * 2 * MB}).encode()
        sent = f"POST {ann.upload}", JSON, f"Content-Length: {len(body)}", ann.bearer
        assert door.ask(*sent, body=body).status == 400  # it arrives; that key is too long


def test_a_body_is_on_the_disk_once(door: Door, tmp_path_factory: pytest.TempPathFactory) -> None:
    """While a request waits for the database, for a second."""
    ann = door.people["ann"]
    database = Path(f"/proc/{door.pid}/environ").read_bytes().split(b"\0")
    folder = next(each for each in database if each.startswith(b"AGENTSITE_DATA=")).partition(b"=")[2]
    most, done = 0, threading.Event()
    body = json.dumps({"input": "x" * 3_000_000}).encode()

    def send() -> None:
        sent = door.ask(f"POST {ann.upload}", JSON, f"Content-Length: {len(body)}", ann.bearer, body=body)
        assert sent.status in (400, 413, 503), sent
        done.set()

    with locked(Path(os.fsdecode(folder)) / "data" / "agentsite.sqlite3"):
        sender = threading.Thread(target=send)
        sender.start()
        while not done.is_set() and sender.is_alive():
            most = max(most, door.disk)
        sender.join()
    assert done.is_set()
    assert 2 * MB < most < 4 * MB


def test_bodies_of_clients_that_left_are_not_kept(door: Door) -> None:
    """However they leave: while they send, or before they get their answer."""
    ann = door.people["ann"]
    for size in (MB, 2 * MB):
        for _ in range(10):
            door.open(f"POST {ann.upload}", JSON, ann.bearer, f"Content-Length: {2 * MB}", body=b" " * size).close()
    wait_for(lambda: door.disk < MB)

    def arrives() -> bool:
        with door.open(f"POST {ann.upload}", JSON, ann.bearer, f"Content-Length: {3 * MB}", body=b" " * 3 * MB) as one:
            return answer(one).status in (400, 413)

    wait_for(arrives)


def chunks(count: int, size: int) -> bytes:
    return (b"%x\r\n%s\r\n" % (size, b"x" * size)) * count


def test_a_body_in_tiny_pieces_is_refused_and_no_longer_read(door: Door) -> None:
    """A byte in each took 8 s of the processor for 1 MB, without signing in. What is sent after that is not taken."""
    with door.open("POST /login/", "Transfer-Encoding: chunked", body=chunks(12_000, 1)) as client:
        refused = answer(client)
        assert refused.status == 400
        assert "in too many small pieces" in refused.text
        client.settimeout(1)
        with pytest.raises(OSError, match="timed out"):
            client.sendall(chunks(8_000_000, 1))  # more than the buffers of the system hold


def test_small_pieces_are_taken(door: Door) -> None:
    """Those of a program that sends line by line, and a short body in single bytes."""
    for count, size in ((9_000, 1), (40_000, 70)):
        sent = "POST /login/", "Transfer-Encoding: chunked"
        assert door.ask(*sent, body=chunks(count, size) + b"0\r\n\r\n").status == 403
