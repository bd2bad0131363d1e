"""Prices: what an answer cost, from the data in `genai-prices`. Nothing is fetched, and nothing here ever raises.

A price belongs to an address, not to a model's name: the same open model is sold by one server and free on another. So
a price is known only if the base URL belongs to a provider in the data. A server of your own, a proxy and the demo
model have no prices.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib import import_module
from types import ModuleType

from agents.providers.common.address import OPENAI, is_loopback

log = logging.getLogger(__name__)


async def cost(base_url: str | None, usage: Mapping[str, int], *names: str) -> int | None:
    """Return the cost of these counts at an address in billionths of a US dollar; None if no price is known.

    Without `base_url` it is OpenAI's. The first known name is used: servers answer with a model's full name, or with a
    name of their own.
    """
    if not is_loopback(base_url) and usage and not (loading := _loading()).done():
        await asyncio.wait([asyncio.wrap_future(loading)])
    return cost_in_thread(base_url, usage, *names)


def cost_in_thread(base_url: str | None, usage: Mapping[str, int], *names: str) -> int | None:
    """Return the same in a thread that may wait: the first time, it loads the data."""
    if is_loopback(base_url) or not usage:
        return None
    try:
        _loading().result()
        return _cost(usage, names, base_url or OPENAI)
    except Exception:  # an answer must not fail because of its price
        log.warning("no price for %s", names, exc_info=True)
        return None


@cache
def _loading() -> Future[ModuleType]:
    """Return the future of the data, which takes half a second to load, in a thread that does nothing else.

    asyncio's own threads also look up host names: an answer that is complete must not wait for a slow resolver.
    """
    return ThreadPoolExecutor(1, thread_name_prefix="prices").submit(import_module, "genai_prices.data")


def _cost(usage: Mapping[str, int], names: Iterable[str], address: str) -> int | None:
    from genai_prices import Usage, calc_price

    given, cached = usage.get("input_tokens", 0), usage.get("cached_tokens", 0)
    counts = Usage(
        input_tokens=given, cache_read_tokens=min(cached, given), output_tokens=usage.get("output_tokens", 0)
    )
    for name in names:
        with contextlib.suppress(LookupError):
            price = calc_price(counts, name, provider_api_url=address)
            return round(price.total_price * 1_000_000_000)
    return None
