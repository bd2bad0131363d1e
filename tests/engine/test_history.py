"""What a turn is told of the prompts before it."""

from __future__ import annotations

from agents.engine.limits import Limits
from agents.engine.outputs import Output, TextOutput
from agents.engine.services import PastTurn
from tests.engine.cast import World, site
from tests.engine.support import ScriptedProvider, Site, carry_on, says, seen


def past(number: int, words: str) -> PastTurn:
    answer: list[Output] = [TextOutput(path="1", position=number, text=f"answer {number} {words}")]
    return PastTurn(number, f"question {number}", answer)


async def asked_after(turns: list[PastTurn], world: World, limits: Limits) -> str:
    """What the model reads in the first round of the next prompt."""
    provider = ScriptedProvider(lambda _: says("Yes."))
    registry, _ = site(provider, world.tools())
    await carry_on(registry, services=Site(past=turns), limits=limits)
    return str(seen(provider.asked[0]))


async def test_earlier_prompts_are_told_oldest_first(world: World) -> None:
    """Input and outputs of each, then what was said now (S13)."""
    told = await asked_after([past(1, "a"), past(2, "b")], world, Limits())
    places = [told.index(words) for words in ("question 1", "answer 1", "question 2", "answer 2")]
    assert places == sorted(places)


async def test_over_the_budget_the_oldest_prompts_are_dropped_whole(world: World) -> None:
    """Never a question without its answer, nor a call without its result (R13, S101)."""
    turns = [past(number, "word " * 200) for number in range(1, 6)]
    told = await asked_after(turns, world, Limits(history_tokens=700))
    kept = [number for number in range(1, 6) if f"question {number}" in told]
    assert kept == [number for number in range(1, 6) if f"answer {number}" in told]
    assert kept == [4, 5]
