"""The model server: requests to it over connections that are kept, one pool for each event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from io import BytesIO
from weakref import WeakKeyDictionary

from aiohttp import (
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    SocketTimeoutError,
    TCPConnector,
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
AT_ONCE_MOST = 64 * 1024
"""Bytes of a body that are handed to the connection at once; of a larger one, as many as it takes."""
READ_BYTES = 32 * 1024
"""Bytes of an answer that wait for a client: with what the server keeps, 0.6 MB for a slow one, and 1.8 with twice as
many (measured)."""
LINE_MOST = 64 * 1024
"""Bytes of one header of the server's."""


class Upstream:
    """The model server at `base_url`, OpenAI itself if that is empty, with the site's key."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self._base_url = (base_url or OPENAI).rstrip("/")
        self._authorization = f"Bearer {api_key or 'none'}"
        self.key = api_key
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, ClientSession] = WeakKeyDictionary()

    async def ask(
        self, method: str, path: str, query: str, headers: Sequence[Header], body: bytes | None
    ) -> ClientResponse:
        """Send a request. Returns when its answer begins; closing the answer early cancels it at the server, too.

        `path` follows the base URL, and begins with a slash. Raises Refused: 502 if the server cannot be reached, 504
        if it says nothing.
        """
        url = URL(f"{self._base_url}{path}{'?' if query else ''}{query}", encoded=True)
        sent = [*to_server(headers), ("Authorization", self._authorization)]
        data = BytesIO(body) if body and len(body) > AT_ONCE_MOST else body
        try:
            return await self._session().request(method, url, headers=sent, data=data, allow_redirects=False)
        except SocketTimeoutError:
            said = f"The model server said nothing for {SILENCE_SECONDS:.0f} seconds."
            raise Refused(504, "upstream_silent", said) from None
        except (ClientError, OSError, ValueError):  # OSError: TimeoutError is one
            said = "The model server cannot be reached. Send this again in a moment, or tell whoever runs this site."
            raise Refused(502, "upstream_unreachable", said) from None

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
                # HTTP_PROXY is for servers elsewhere: a proxy cannot reach our own loopback.
                trust_env=not is_loopback(self._base_url),
            )
        return self._sessions[loop]
