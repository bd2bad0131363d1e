"""Calls of an answer go on while somebody else appends to the conversation."""

from __future__ import annotations

import pytest

from agents.engine.ledger import EMPTY, Step
from agents.engine.view import View
from tests.engine.cast import World, site
from tests.engine.journals import SharedJournal
from tests.engine.support import call, carry_on, says


@pytest.mark.parametrize("n", range(1, 9))
async def test_every_call_of_an_answer_runs_though_its_number_changes(n: int) -> None:
    """The answer is recorded with what its first call does; steps of others before it give it other numbers."""
    batch = says("Both.", call("touch", name="a"), call("touch", name="b"), call("touch", name="c"))
    world = World()
    registry, _ = site([batch, says("Done.")], world.tools())
    journal = SharedJournal()
    journal.push(n, lambda _: [Step("user:7", "note", {"code": "seen", "message": "Meanwhile."})])
    await carry_on(registry, EMPTY, journal=journal)
    ended = View(journal.ledger)
    assert [ended.result(f"1/{number}") is not None for number in range(3)] == [True] * 3
    assert ended.result("")
