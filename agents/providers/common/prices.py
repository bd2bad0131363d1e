"""What an answer cost, by the prices that `genai-prices` packs. Nothing is fetched, and nothing here ever raises.

A price belongs to an address, not to a model's name: the same open model is sold by one server and free on the next. So
a price is known only where the base URL is that of a provider in the data; a server of one's own, a proxy and the demo
model have none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache

from agents.providers.common.client import is_loopback

OPENAI = "https://api.openai.com/v1"
"""Where the SDK asks that is given no address."""

Priced = Callable[[Mapping[str, int]], int]
"""From an answer's counts to billionths of a dollar."""

log = logging.getLogger(__name__)


class Prices:
    """The prices of one address."""

    def __init__(self, base_url: str | None) -> None:
        self._address = base_url or OPENAI
        self._local = is_loopback(base_url)
        self._known: dict[str, Priced | None] = {}

    def prepare(self) -> None:
        """Begin to load the data (over a second of work) beside whatever happens now."""
        if not self._local:
            _loading()

    async def cost(self, usage: Mapping[str, int], *names: str) -> int | None:
        """Billionths of a US dollar for these counts; None where no model of these names has a known price here.

        The first name that is known counts: servers answer with a model's full name, or with one of their own.
        """
        if self._local or not usage:
            return None
        try:
            if not _loading().done():
                await asyncio.wait([asyncio.wrap_future(_loading())])
            priced = next(filter(None, map(self._of, names)), None)
            return priced(usage) if priced else None
        except Exception:  # an answer is worth more than its price
            log.warning("no price for %s", names, exc_info=True)
            return None

    def _of(self, name: str) -> Priced | None:
        if name not in self._known:
            self._known[name] = _found(name, self._address)
        return self._known[name]


@cache
def _loading() -> Future[None]:
    """The data on its way, in a thread."""
    return ThreadPoolExecutor(1, thread_name_prefix="prices").submit(_load)


def _load() -> None:
    from genai_prices import data  # noqa: F401 - half a second, and only where there is something to pay


def _found(name: str, address: str) -> Priced | None:
    from genai_prices import Usage
    from genai_prices.data_snapshot import get_snapshot

    try:
        provider, model = get_snapshot().find_provider_model(name, None, None, address)
    except LookupError:
        return None

    def priced(usage: Mapping[str, int]) -> int:
        given, cached = usage.get("input_tokens", 0), usage.get("cached_tokens", 0)
        counts = Usage(
            input_tokens=given, cache_read_tokens=min(cached, given), output_tokens=usage.get("output_tokens", 0)
        )
        price = model.calc_price(counts, provider, genai_request_timestamp=datetime.now(UTC))
        return round(price.total_price * 1_000_000_000)

    return priced
