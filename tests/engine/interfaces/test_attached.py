"""Attached files: the model reads about them, in their turn and in later ones."""

from __future__ import annotations

from agents.engine.interfaces.attached import Attachment
from agents.engine.interfaces.messages import UserMessage
from agents.engine.interfaces.services import PastTurn
from tests.engine.cast import World, site
from tests.engine.support import ScriptedProvider, Site, carry_on, decide, open_gates, says, seen
from tests.engine.support import call as asks

SALES = Attachment(5, "sales.csv", 61_204, "sales-2.csv")
LINE = "[Attached: sales.csv, 61,204 bytes. It lies in the workspace as sales-2.csv.]"
GIVEN = {"text": "Sum this up.", "files": [SALES.recorded()]}


async def test_the_model_reads_a_line_per_file_beside_the_words(world: World) -> None:
    """The text stays as typed, and plugins get it as typed too."""
    provider = ScriptedProvider(lambda _: says("Yes."))
    registry, _ = site(provider, world.tools())
    await carry_on(registry, payload=GIVEN)
    assert seen(provider.asked[0]) == [UserMessage("Sum this up.", (LINE,))]


async def test_files_alone_are_a_message(world: World) -> None:
    provider = ScriptedProvider(lambda _: says("Yes."))
    registry, _ = site(provider, world.tools())
    await carry_on(registry, payload={**GIVEN, "text": ""})
    assert seen(provider.asked[0]) == [UserMessage("", (LINE,))]


async def test_a_later_turn_reads_what_the_turn_itself_read(world: World) -> None:
    """The same bytes, so that a provider's prefix cache still hits."""
    provider = ScriptedProvider(lambda _: says("Yes."))
    registry, _ = site(provider, world.tools())
    await carry_on(registry, payload=GIVEN)
    await carry_on(registry, services=Site(past=[PastTurn(0, "Sum this up.", [], [SALES])]))
    first, later = (request.history for request in provider.asked)
    assert later[0].startswith(first[0])


async def test_a_turn_that_goes_on_from_its_ledger_reads_the_same(world: World) -> None:
    """After a gate, in another process (R3)."""
    provider = ScriptedProvider([says("I ask.", asks("shell.run", command="a")), says("Done.")])
    registry, _ = site(provider, world.tools())
    waiting = await carry_on(registry, payload=GIVEN)
    (gate,) = open_gates(waiting)
    await carry_on(registry, decide(waiting, gate), payload=GIVEN)
    first, later = (request.history for request in provider.asked)
    assert later[: len(first)] == first
