"""Serving the demo model: a socket on loopback, a uvicorn server, and a process that ends with a signal."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import uvicorn

from agents.providers.demo.app import App

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


def uvicorn_server(app: App) -> uvicorn.Server:
    """Return a uvicorn server for the app, without logs. It ends open streams when it stops."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",  # a client that sent a bad request is told so
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=0,
        )
    )


def serve(app: App, port: int, port_file: Path | None) -> None:
    """Serve the app until SIGTERM or SIGINT, then exit with 0. `port_file` gets the port once connections are accepted.

    Raises OSError if the port is taken.
    """
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda *_: sys.exit(0))  # uvicorn stops first, then raises the signal again
    sock = listen(port)
    if port_file:
        _write(port_file, str(sock.getsockname()[1]))
    uvicorn_server(app).run(sockets=[sock])


def _write(path: Path, text: str) -> None:
    """Write the file atomically: whoever waits for it sees all of it or nothing."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.replace(path)
