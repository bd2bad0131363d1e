"""History: what a turn's model is sent about the prompts before it."""

from __future__ import annotations

from dataclasses import dataclass

from agents import Action, Context, Step
from agents.engine.agent.projection import CallIds, round_messages
from agents.engine.interfaces.messages import AssistantMessage, ResultMessage, UserMessage
from agents.engine.interfaces.provider import Request
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import EMPTY, Ledger
from agents.engine.limits import Limits
from agents.engine.outputs.kinds import Output, TextOutput, WidgetOutput
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.results.tools import read_on
from tests.engine.cast import Number, World, site
from tests.engine.journals import numbered
from tests.engine.sound import problems
from tests.engine.support import ScriptedProvider, Site, call, carry_on, results_in, says, seen


def past_turn(number: int, words: str) -> PastTurn:
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
    told = await asked_after([past_turn(1, "a"), past_turn(2, "b")], world, Limits())
    places = [told.index(words) for words in ("question 1", "answer 1", "question 2", "answer 2")]
    assert places == sorted(places)


async def test_what_a_policy_showed_is_told_to_later_turns(world: World) -> None:
    """As its kind says; a widget is not (S8, S9)."""
    registry, _ = site([says("Yes.")], world.tools())

    @registry.register("plan")
    async def plan(action: Action, ctx: Context) -> list[Step]:
        await ctx.show(WidgetOutput(widget="table", data={"rows": [1]}, fallback="one row"))
        await ctx.file("trip.txt", b"Day 1", media_type="text/plain", summary="The trip.")
        return ctx.done()

    past = PastTurn(1, "Plan it.", Outputs(await carry_on(registry, policy="plan", payload={})).in_order())
    provider = ScriptedProvider(lambda _: says("Yes."))
    await carry_on(site(provider)[0], services=Site(past=[past]))
    told = seen(provider.asked[0])
    assert told == [UserMessage("Plan it."), AssistantMessage("[file trip.txt] The trip."), UserMessage("go")]
    assert problems(told) == []


def test_what_a_called_policy_showed_is_told_with_its_result() -> None:
    """Wherever below its call it stands; what a tool within it made is told to nobody else."""
    said = [
        Step("user:1", "action_call", {"policy": "agent", "payload": {}}),
        Step("runtime", "action_call", {"policy": "model", "payload": {"round": 1}}, "1"),
        Step("model", "action_call", {"policy": "plan", "payload": {}}, "1/0"),
        Step("policy:plan", "action_call", {"policy": "file", "payload": {"name": "a.txt"}}, "1/0/1"),
        Step("policy:plan", "file", {"file": 1, "name": "a.txt", "summary": "Mine."}, "1/0/1"),
        Step("policy:plan", "action_call", {"policy": "report.write", "payload": {}, "tool": True}, "1/0/2"),
        Step("tool:report.write", "file", {"file": 2, "name": "b.txt", "summary": "The tool's."}, "1/0/2"),
        Step("plan", "action_result", {"output": "Done."}, "1/0"),
    ]
    outputs = Outputs(numbered(EMPTY, said))
    *_, result = round_messages(outputs, "1", CallIds(), prompt=1, limits=Limits())
    assert isinstance(result, ResultMessage)
    assert result.texts == ("Done.", "[file a.txt] Mine.")


async def test_over_the_budget_the_oldest_prompts_are_dropped_whole(world: World) -> None:
    """Never a question without its answer, nor a call without its result (R13, S101)."""
    turns = [past_turn(number, "word " * 200) for number in range(1, 6)]
    told = await asked_after(turns, world, Limits(history_tokens=700))
    kept = [number for number in range(1, 6) if f"question {number}" in told]
    assert kept == [number for number in range(1, 6) if f"answer {number}" in told]
    assert kept == [4, 5]


async def _long_turn() -> Ledger:
    """A turn that read three long pages in each of its rounds, and ended at its limit of three."""

    @tool("page.read", risk=Risk.READ)
    async def page(call: ToolCall[Number]) -> str:
        return f"page {call.input.a} " + "word " * 4000

    reads = says("", *(call("page.read", a=number) for number in range(3)))
    return await carry_on(site([reads] * 3, [page], rounds=3)[0])


async def _after(past: list[PastTurn], tokens: int) -> Request:
    """The first request of a turn that continues the last of these, within a budget of tokens."""
    provider = ScriptedProvider(lambda _: says("Yes."))
    services, limits = Site(past=past, prompt=9), Limits(history_tokens=tokens)
    await carry_on(site(provider)[0], payload={"continues": past[-1].prompt}, services=services, limits=limits)
    return provider.asked[0]


async def test_the_last_prompt_is_told_with_shorter_results_where_it_alone_is_too_long() -> None:
    """What a turn takes up is never left out: what was asked and each result stay, head, tail and how to read on."""
    outputs = Outputs(await _long_turn()).in_order()
    past = [past_turn(1, "old"), PastTurn(2, "Please read it all.", outputs)]
    whole, less = await _after(past, 100_000), await _after(past, 10_000)
    assert sum(map(len, whole.history)) > 4 * 10_000 >= sum(map(len, less.history))
    assert problems(seen(less)) == []
    assert "Please read it all." in str(seen(less))
    assert "question 1" in str(seen(whole))
    assert "question 1" not in str(seen(less))
    assert len(results_in(less)) == 9
    for number, result in enumerate(results_in(less)):
        assert result.startswith(f"page {number % 3} word")
        assert f'"result": "2:{number // 3 + 1}/{number % 3}"' in result
    assert (await _after(past, 10_000)).history == less.history


@dataclass
class Kept(Site):
    """A site that keeps one long result."""

    async def result_of(self, prompt: int, path: str) -> str:
        return "".join(f"line {number}\n" for number in range(10_000))


async def test_pages_of_a_long_result_are_shortened_too() -> None:
    """Each is told as the shorter page that it then is, so that what it leaves out can be read."""
    pages = [call("results.read", result="1:1/0", offset=number * 16_000) for number in range(4)]
    ledger = await carry_on(site([says("", *pages), says("Read.")], [read_on])[0], services=Kept())
    past = [PastTurn(2, "Please read it all.", Outputs(ledger).in_order())]
    whole, less = await _after(past, 100_000), await _after(past, 1_000)
    assert [len(told) > 16_000 for told in results_in(whole)] == [True] * 4
    assert sum(map(len, less.history)) <= 4 * 1_000
    text = await Kept().result_of(1, "1/0")
    for number, told in enumerate(results_in(less)):
        line, _, content = told.partition("\n")
        start, end = number * 16_000, number * 16_000 + len(content)
        assert line == f"[Characters {start} to {end} of {len(text)}; the next offset is {end}.]"
        assert content == text[start:end] != ""


async def test_what_cannot_be_made_to_fit_is_told_as_short_as_it_gets() -> None:
    """Over the budget, but there."""
    outputs = Outputs(await _long_turn()).in_order()
    least = await _after([PastTurn(2, "Please.", outputs)], 1)
    assert [len(result) < 500 for result in results_in(least)] == [True] * 9
    (empty, asked) = PastTurn(3, None, ()), PastTurn(2, "Please.", outputs)
    assert (await _after([asked, empty], 1)).history == least.history
