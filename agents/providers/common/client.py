"""The `openai` SDK's clients: one for each event loop, since a connection belongs to the loop that opened it."""

from __future__ import annotations

import asyncio
import ipaddress
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

CONNECT_SECONDS = 10.0
"""The longest time to reach the server."""


class Clients:
    """The clients by event loop. Each is created on first use.

    The SDK's own retries are off: the caller counts and records the attempts.
    `read_seconds` is the longest silence in an answer.
    """

    def __init__(self, api_key: str, base_url: str | None, read_seconds: float) -> None:
        self.api_key = api_key
        self._base_url = base_url
        self._timeout = Timeout(read_seconds, connect=CONNECT_SECONDS)
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI] = WeakKeyDictionary()

    def get(self) -> AsyncOpenAI:
        """Return the running loop's client."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = AsyncOpenAI(
                api_key=self.api_key or "none",  # the SDK requires one; local servers do not
                base_url=self._base_url,
                max_retries=0,
                timeout=self._timeout,
                # HTTP_PROXY is for servers elsewhere: a proxy cannot reach our own loopback.
                http_client=DefaultAsyncHttpxClient(trust_env=not is_loopback(self._base_url)),
            )
        return self._clients[loop]

    async def aclose(self) -> None:
        """Close the running loop's connections. Call it before the loop ends; a later `get` opens new ones."""
        if client := self._clients.pop(asyncio.get_running_loop(), None):
            await client.close()


def is_loopback(base_url: str | None) -> bool:
    """Return whether the address is on this machine."""
    host = urlsplit(base_url or "").hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
