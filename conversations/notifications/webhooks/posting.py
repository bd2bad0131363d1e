"""Posting: one try to send a webhook, and what came of it.

Nothing of the environment counts, neither proxies nor passwords. Redirects are answers like any other, because where
they lead was not checked.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, AI_NUMERICHOST, AddressFamily

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from conversations.notifications.webhooks.addresses import BadAddress, checked, parsed
from conversations.notifications.webhooks.signing import signature

logger = logging.getLogger(__name__)

CONNECT_SECONDS, TOTAL_SECONDS = 10, 15
READ_MOST = 64 * 1024
"""Bytes that are read of an answer."""
ANSWER_MOST = 500
"""Characters that are kept of the answer to a failed try."""


@dataclass(frozen=True)
class Outcome:
    """What came of a try. `status`: of the answer, if there was one; `error`: why it failed, "" if it did not.

    `retry_seconds`: how long the receiver asked to wait.
    """

    status: int | None = None
    error: str = ""
    answer: str = ""
    retry_seconds: float = 0

    @property
    def away(self) -> bool:
        """Whether the receiver can take nothing at the moment, rather than refuses this one delivery."""
        busy = self.status is None or self.status == HTTPStatus.TOO_MANY_REQUESTS or self.status >= 500
        return bool(self.error) and busy

    @property
    def gone(self) -> bool:
        """Whether the receiver wants no more webhooks."""
        return self.status == HTTPStatus.GONE


def post(address: str, secret: str, id: str, body: str) -> Outcome:
    """Send a webhook once, if it may be sent there."""
    try:
        url = parsed(address)
        return asyncio.run(_posted(url, checked(url), _headers(secret, id, body.encode()), body.encode()))
    except BadAddress as error:
        return Outcome(error=str(error))
    except TimeoutError:
        return Outcome(error=f"There was no whole answer within {TOTAL_SECONDS} seconds.")
    except (aiohttp.ClientError, ssl.SSLError, OSError, ValueError) as error:
        return Outcome(error=f"There was no answer: {_said(error)}")
    except Exception as error:  # a try that was not recorded would be made again for ever
        logger.exception("a webhook could not be sent")
        return Outcome(error=f"It could not be sent: {type(error).__name__}.")


def _headers(secret: str, id: str, body: bytes) -> dict[str, str]:
    """Return the headers, signed with the time of this try."""
    now = str(int(time.time()))
    signed = f"v1,{signature(secret, id, now, body)}"
    ours = {"Content-Type": "application/json", "User-Agent": "Agentsite", "Accept-Encoding": "identity"}
    return {**ours, "webhook-id": id, "webhook-timestamp": now, "webhook-signature": signed}


async def _posted(url: URL, addresses: list[str], headers: Mapping[str, str], body: bytes) -> Outcome:
    connector = aiohttp.TCPConnector(resolver=_Known(addresses), use_dns_cache=False, force_close=True)
    limits = aiohttp.ClientTimeout(total=TOTAL_SECONDS, sock_connect=CONNECT_SECONDS)
    session = aiohttp.ClientSession(
        connector=connector, timeout=limits, trust_env=False, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
    )
    async with session, session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
        if HTTPStatus(200) <= answer.status < HTTPStatus(300):
            return Outcome(answer.status)
        said = (await _beginning(answer)).decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
        error = f"The answer was {answer.status}."
        return Outcome(answer.status, error, said[:ANSWER_MOST], _retry_seconds(answer.headers.get("Retry-After", "")))


async def _beginning(answer: aiohttp.ClientResponse) -> bytes:
    """Return at most READ_MOST bytes of the body."""
    read = b""
    while len(read) < READ_MOST and (piece := await answer.content.read(READ_MOST - len(read))):
        read += piece
    return read


def _retry_seconds(text: str) -> float:
    """Return what a Retry-After says: seconds, or a date. 0 if it says nothing that can be read."""
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):  # a date without a zone cannot be subtracted
        return 0.0


def _said(error: Exception) -> str:
    """Return what went wrong, without the address, of which a part may be a secret."""
    match error:
        case aiohttp.ClientResponseError(message=said):
            pass
        case aiohttp.ClientConnectorCertificateError():
            said = "its certificate cannot be trusted."
        case aiohttp.ClientConnectorError(os_error=OSError(errno=int(number))) if number in errno.errorcode:
            said = os.strerror(number)
        case aiohttp.InvalidURL():
            said = ""
        case _:
            said = str(error)
    return (said or type(error).__name__)[:250]


class _Known(AbstractResolver):
    """A resolver that knows the addresses that were checked, and asks nobody."""

    def __init__(self, addresses: list[str]) -> None:
        self._addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: AddressFamily = AF_INET) -> list[ResolveResult]:
        """Return the checked addresses, whatever the name: there is only the one of the webhook."""
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=AF_INET6 if ip_address(address).version == 6 else AF_INET,
                proto=0,
                flags=AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Close nothing."""
