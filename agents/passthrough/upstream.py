"""The model server: requests to it over connections that are kept, one pool for each event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

from aiohttp import (
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    SocketTimeoutError,
    TCPConnector,
    TraceConfig,
    TraceRequestChunkSentParams,
)
from yarl import URL

from agents.passthrough.errors import Refused
from agents.passthrough.headers import Header, to_server
from agents.providers.common.address import OPENAI, is_loopback

CONNECT_SECONDS = 10.0
"""The longest time to reach the server."""
SILENCE_SECONDS = 600.0
"""The longest silence, before an answer or in it. OpenAI's own clients wait as long by default."""
IDLE_SECONDS = 4.0
"""How long a connection is kept that nobody uses: less than servers do, uvicorn's 5 s for one. A request over one that
the server closes at this moment would be lost, and nobody knows whether it may be sent again."""
UNDIVIDED_MOST = 64 * 1024
"""Bytes of a body that are handed to the connection at once; of a larger one, as many as it takes."""
READ_BYTES = 32 * 1024
"""Bytes of an answer that wait for a client: with what the server keeps, 0.6 MB for a slow one, and 1.8 with twice as
many (measured)."""
LINE_MOST = 64 * 1024
"""Bytes of one header of the server's."""
FAILED, SILENT = 400, 504
"""Statuses from the first one on are errors; the second says that no answer came in SILENCE_SECONDS."""
REPORT_SECONDS = 60.0
"""The shortest time between two warnings in the log."""

logger = logging.getLogger(__name__)


class Upstream:
    """The model server at `base_url`, OpenAI itself if that is empty, with the site's key."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self._base_url = (base_url or OPENAI).rstrip("/")
        self._authorization = f"Bearer {api_key or 'none'}"
        self._proxy = _proxy_to(self._base_url)
        self._reported = -REPORT_SECONDS
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, ClientSession] = WeakKeyDictionary()

    async def ask(
        self,
        method: str,
        path: str,
        query: str,
        headers: Sequence[Header],
        body: bytes | None = None,
        *,
        sent: Callable[[int], None] | None = None,
    ) -> ClientResponse:
        """Send a request. Returns when its answer begins; closing the answer early cancels it at the server, too.

        `path` follows the base URL, and begins with a slash. `sent` is called with the bytes of each piece of the body
        as soon as it is the connection's turn.

        Raises Refused: 502 if the server cannot be reached, breaks off or redirects, 504 if it says nothing.
        """
        url = URL(f"{self._base_url}{path}{'?' if query else ''}{query}", encoded=True)
        all_headers = [*to_server(headers), ("Authorization", self._authorization)]
        data = BytesIO(body) if body and len(body) > UNDIVIDED_MOST else body
        try:
            answer = await self._session().request(
                method,
                url,
                headers=all_headers,
                data=data,
                allow_redirects=False,
                proxy=self._proxy,
                trace_request_ctx=sent,
            )
        except SocketTimeoutError as error:
            self._report(error)
            said = f"The model server said nothing for {SILENCE_SECONDS:.0f} seconds."
            raise Refused(SILENT, "upstream_silent", said) from None
        except (ClientError, OSError) as error:  # TimeoutError is an OSError
            self._report(error)
            said = "The model server cannot be reached. Send this again in a moment, or tell whoever runs this site."
            raise Refused(502, "upstream_unreachable", said) from None
        if not 200 <= answer.status < 300 and answer.status < FAILED:
            answer.close()  # a client would follow it, and send what it has to say to somebody else
            raise Refused(502, "upstream_redirects", "The model server leads elsewhere. Tell whoever runs this site.")
        return answer

    def _report(self, error: Exception) -> None:
        """Log why the server does not answer: the first time, and then at most once in REPORT_SECONDS."""
        if time.monotonic() - self._reported > REPORT_SECONDS:
            self._reported = time.monotonic()
            logger.warning(
                "the model server does not answer a request under /v1: %s", str(error) or type(error).__name__
            )

    def _session(self) -> ClientSession:
        """Return the running loop's connections: each belongs to the loop that opened it."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            self._sessions[loop] = ClientSession(
                connector=TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS),
                timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS),
                auto_decompress=False,
                read_bufsize=READ_BYTES,
                cookie_jar=DummyCookieJar(),
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
                max_line_size=LINE_MOST,
                max_field_size=LINE_MOST,
                trace_configs=[_telling_what_is_sent()],
            )
        return self._sessions[loop]


def _proxy_to(address: str) -> str | None:
    """Return the proxy that the environment names for this address. aiohttp by itself would read .netrc, too."""
    parts = urlsplit(address)
    # HTTP_PROXY is for servers elsewhere: a proxy cannot reach our own loopback.
    if is_loopback(address) or proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)


def _telling_what_is_sent() -> TraceConfig:
    """Return what makes aiohttp call the `sent` of a request."""

    async def tell(_session: ClientSession, context: Any, piece: TraceRequestChunkSentParams) -> None:
        if context.trace_request_ctx:
            context.trace_request_ctx(len(piece.chunk))

    trace = TraceConfig()
    trace.on_request_chunk_sent.append(tell)
    return trace
