"""Calls that ran but whose result could not be saved: they must not be mistaken for failed ones and run again."""

from __future__ import annotations

from typing import Any

import pytest

from agents.engine.errors import ToolError
from agents.engine.ledger import Ledger
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool
from tests.engine.cast import Counting, Name, site
from tests.engine.journals import CrashingJournal
from tests.engine.support import Site, call, carry_on, lines, open_gates, results_in, says

SCRIPT = [says("", call("order", name="x")), says("Done.")]
RAN = "Error (not_kept): It ran, but its result could not be saved."


class Shop:
    """A service that takes and counts orders, and gives a receipt for each."""

    def __init__(self) -> None:
        self.orders = 0

    def tool(self, **more: Any) -> Tool:
        @tool("order", risk=Risk.WRITE, approval=False, **more)
        async def order(call: ToolCall[Name]) -> str:
            self.orders += 1
            call.file("receipt.txt", b"paid", media_type="text/plain", summary="Paid.")
            call.widget("table", {"rows": [1]}, "one row")
            return "ordered"

        return order


class Storage(Site):
    """A site whose storage raises this while it has something to raise."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)

    async def save_file(self, name: str, content: bytes, media_type: str, summary: str) -> int:
        if self.errors:
            raise self.errors.pop()
        return await super().save_file(name, content, media_type, summary)


class Away(Exception):
    """The database is: an error of the site's own."""


async def broken_off(shop: Shop, **more: Any) -> Ledger:
    """The ledger of a turn whose order went out while the database was away."""
    journal = CrashingJournal()
    with pytest.raises(Away):
        await carry_on(site(SCRIPT, [shop.tool(**more)])[0], journal=journal, services=Storage(Away()))
    return journal.ledger


async def test_a_file_that_cannot_be_kept_does_not_undo_the_call() -> None:
    """The model reads that it ran, and why there is no result (R15)."""
    shop = Shop()
    registry, provider = site(SCRIPT, [shop.tool()])
    ledger = await carry_on(registry, services=Storage(ToolError("The disk is full.", code="disk_full")))
    assert results_in(provider.asked[1]) == [f"{RAN} The disk is full."]
    assert shop.orders == 1
    assert not {"1/0 file", "1/0 widget"} & set(lines(ledger))


async def test_an_answer_that_is_no_json_does_not_undo_the_call() -> None:
    """The same for a plugin's state that cannot be saved."""

    @tool("order", risk=Risk.WRITE, approval=False)
    def answers(call: ToolCall[Name]) -> object:
        return {"a": object()}

    @tool("order", risk=Risk.WRITE, approval=False, plugin=Counting)
    def counts(call: ToolCall[Name]) -> None:
        call.state = None

    for each, why in ((answers, "TypeError: the result.a: a object is not JSON"), (counts, "AttributeError: ")):
        registry, provider = site(SCRIPT, [each], [Counting()])
        await carry_on(registry)
        assert results_in(provider.asked[1])[0].startswith(f"{RAN} {why}")


async def test_a_call_that_ran_while_the_database_went_away_asks_its_owner() -> None:
    """As after a crash: it is not done again by itself (R15)."""
    shop = Shop()
    ledger = await broken_off(shop)
    assert lines(ledger)[-1] == "1/0 action_start"
    waiting = await carry_on(site(SCRIPT, [shop.tool()])[0], ledger)
    assert (shop.orders, open_gates(waiting)) == (1, ["1/0/card1"])


async def test_what_may_run_twice_is_done_again_when_the_database_is_back() -> None:
    """Nobody is asked (R15)."""
    shop = Shop()
    registry, provider = site(SCRIPT, [shop.tool(idempotent=True)])
    await carry_on(registry, await broken_off(shop, idempotent=True))
    assert (shop.orders, results_in(provider.asked[-1])) == (2, ["ordered\n\n[file receipt.txt] Paid."])
