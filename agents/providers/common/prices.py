"""Prices: what an answer cost, from the data in `genai-prices`. Nothing is fetched, and nothing here ever raises.

A price belongs to an address, not to a model's name: the same open model is sold by one server and free on another. So
a price is known only if the base URL belongs to a provider in the data. A server of your own, a proxy and the demo
model have no prices.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib import import_module
from types import ModuleType

from agents.providers.common.client import is_loopback

OPENAI = "https://api.openai.com/v1"
"""The SDK's default address."""

log = logging.getLogger(__name__)


class Prices:
    """The prices of one address."""

    def __init__(self, base_url: str | None) -> None:
        self._address = base_url or OPENAI
        self._local = is_loopback(base_url)

    def prepare(self) -> None:
        """Start loading the data in the background (more than a second of work)."""
        if not self._local:
            _loading()

    async def cost(self, usage: Mapping[str, int], *names: str) -> int | None:
        """Return the cost of these counts in billionths of a US dollar; None if no price is known for these names.

        The first known name is used: servers answer with a model's full name, or with a name of their own.
        """
        if self._local or not usage:
            return None
        try:
            if not _loading().done():
                await asyncio.wait([asyncio.wrap_future(_loading())])
            costs = (_cost(usage, name, self._address) for name in names)
            return next((cost for cost in costs if cost is not None), None)
        except Exception:  # an answer must not fail because of its price
            log.warning("no price for %s", names, exc_info=True)
            return None


@cache
def _loading() -> Future[ModuleType]:
    """Return the future of the data, which a thread loads: it takes half a second."""
    return ThreadPoolExecutor(1, thread_name_prefix="prices").submit(import_module, "genai_prices.data")


def _cost(usage: Mapping[str, int], name: str, address: str) -> int | None:
    """Return the cost at this address of these counts of the model `name`, see Prices.cost."""
    from genai_prices import Usage, calc_price

    given, cached = usage.get("input_tokens", 0), usage.get("cached_tokens", 0)
    counts = Usage(
        input_tokens=given, cache_read_tokens=min(cached, given), output_tokens=usage.get("output_tokens", 0)
    )
    try:
        price = calc_price(counts, name, provider_api_url=address)
    except LookupError:
        return None
    return round(price.total_price * 1_000_000_000)
