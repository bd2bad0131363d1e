"""Clients that do what no library does: they leave in the middle, and look at how an answer ends."""

from __future__ import annotations

import socket
import struct
import time
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from tests.agentsite.processes import PATIENCE_SECONDS
from tests.passthrough.site import Leg, Site

PLAIN = b'{"model": "m"}'
STREAM = b'{"model": "m", "stream": true}'
PAGE_SECONDS = 3.0
"""How long a page may take: 0.1 s on a machine with nothing else to do, and machines that test are busy."""


def begun(site: Site, leg: Leg, body: bytes = STREAM) -> socket.socket:
    """A connection on which a request was sent."""
    head = (f"Authorization: Bearer {leg.key}", "Content-Type: application/json", f"Content-Length: {len(body)}")
    return site.door.open("POST /v1/chat/completions", *head, body=body)


def reset(client: socket.socket) -> None:
    """End a connection as a machine does that is switched off: nothing is said."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def ended(leg: Leg, body: bytes) -> tuple[bytes, str]:
    """What a client gets of an answer, and how it ends."""
    there = urlsplit(leg.url)
    connection = HTTPConnection(there.netloc, timeout=PATIENCE_SECONDS)
    connection.request(
        "POST", f"{there.path}/chat/completions", body, leg.bearer | {"content-type": "application/json"}
    )
    got = b""
    try:
        answer = connection.getresponse()
        while piece := answer.read1():
            got += piece
    except (HTTPException, OSError) as error:
        return got, type(error).__name__
    finally:
        connection.close()
    return got, "" if answer.isclosed() and answer.length in (None, 0) else "short"


def page_seconds(site: Site) -> float:
    """How long a page takes."""
    began = time.monotonic()
    assert site.door.ask("GET /login/").status == 200
    return time.monotonic() - began
