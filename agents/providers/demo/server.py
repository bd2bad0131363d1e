"""The demo model's server: runs in a thread of this process, or as a process of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import uvicorn

from agents.providers.demo.app import RecordedRequest, Wire
from agents.providers.demo.rules import answer
from agents.providers.demo.script import InOrder, Reply, Script

BACKLOG = 1024
"""Connections that may wait to be accepted: several hundred clients connect at once."""

KEEP_ALIVE_SECONDS = 75
"""Longer than a client keeps an idle connection, so that the server never closes it first."""


def listen(port: int = 0) -> socket.socket:
    """Return a listening socket on loopback; port 0 picks a free one. Raises OSError if the port is taken."""
    # asyncio disables Nagle's algorithm only if the protocol is given; with Nagle, each answer takes 40 ms longer.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def uvicorn_server(app: Wire) -> uvicorn.Server:
    """Return a uvicorn server for the app, without logs. It ends open streams when it stops."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            log_level="critical",  # errors here are scripted
            date_header=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=0,
        )
    )


class WireServer:
    """The server in a thread, from construction until `stop()`; also a context manager.

    `script` may be a list of replies, used in order. It can be changed at any time.
    `requests` holds the last `keep` requests, oldest first. `strict_turns`: see `Wire`.
    """

    def __init__(
        self, script: Script | Sequence[Reply] = answer, *, keep: int = 1000, strict_turns: bool = False
    ) -> None:
        self._app = Wire(answer, keep, strict_turns=strict_turns)
        self.script = script
        self._socket = listen()
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        self._server = uvicorn_server(self._app)
        self._thread = threading.Thread(target=self._run, name="demo model", daemon=True)
        self._thread.start()

    @property
    def script(self) -> Script:
        """The script that chooses the answers."""
        return self._app.script

    @script.setter
    def script(self, script: Script | Sequence[Reply]) -> None:
        self._app.script = script if callable(script) else InOrder(script)

    @property
    def requests(self) -> deque[RecordedRequest]:
        """The requests received, oldest first."""
        return self._app.requests

    def stop(self) -> None:
        """End the server and its open streams, and wait for the thread."""
        self._server.should_exit = True
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))
