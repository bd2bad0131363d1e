"""A receiver of webhooks: a real server on this machine that keeps what it got, and answers as it is told."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, Mapping[str, str], bytes]


@dataclass(frozen=True)
class Got:
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Receiver:
    """What arrived, and `answer`, which is asked what to answer."""

    url: str = ""
    got: list[Got] = field(default_factory=list)
    answer: Callable[[], Answer] = lambda: (204, {}, b"")


@contextmanager
def receiving(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Run a receiver, with TLS if there is a context for it."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append(Got(self.path, dict(self.headers.items()), body))
            status, headers, said = receiver.answer()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(said)
            except OSError:  # the sender reads no more
                self.close_connection = True

        def log_message(self, *_args: object) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads, block_on_close = True, False

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
        thread.start()
        receiver.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}/hook?a=b"
        yield receiver
        server.shutdown()
        thread.join()
