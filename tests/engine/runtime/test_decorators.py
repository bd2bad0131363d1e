"""loop_wrapper and invoke_action: an agent of any policy, durable turn by turn."""

from collections.abc import Callable
from typing import Any

import pytest

from agents.engine import Action, Context, Ledger, PolicyRegistry, Step, invoke_action, loop_wrapper, run
from agents.engine.agent.model import model
from agents.engine.ledger import action_call, text
from agents.engine.runtime.policy import Decorator
from agents.engine.view import View
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.support import ScriptedProvider, call, lines, results_in, says, seen
from tests.judge import differences

Answer = Callable[[int, Ledger], list[Step]]


class Searching:
    """D's search agent: the policy `think` asks for searches as `answer` says, the policy `search` does them."""

    def __init__(self, answer: Answer, decorators: tuple[Decorator, ...], actions: frozenset[str]) -> None:
        self.registry, self.thought, self.searched = PolicyRegistry(), list[int](), list[str]()
        self.answered = list[Step]()

        @self.registry.register("think")
        async def think(action: Action, ctx: Context) -> list[Step]:
            ledger: Ledger = action.payload["ledger"]
            turn = sum(1 for step in ledger if step.type == "text")
            self.thought.append(turn)
            return answer(turn, ledger)

        @self.registry.register("search", description="Look it up.")
        async def search(action: Action, ctx: Context) -> list[Step]:
            self.searched.append(action.payload["q"])
            return [Step("policy:search", "action_result", {"output": f"found {action.payload['q']}"})]

        @self.registry.register("root")
        async def root(action: Action, ctx: Context) -> list[Step]:
            steps = self.answered = await ctx.call(Action("think", {"ledger": Ledger()}, actions), decorators)
            return [text("policy:root", " ".join(s.payload["text"] for s in steps if s.type == "text"))]

    async def run(self, journal: CrashingJournal | None = None) -> Ledger:
        journal = journal or CrashingJournal()
        return await run("root", {"text": "?"}, self.registry, journal.ledger, journal=journal)


def three_searches(turn: int, ledger: Ledger) -> list[Step]:
    if turn == 3:
        return [text("model", "answer")]
    return [text("model", f"turn {turn}"), action_call("model", "search", {"q": f"q{turn}"})]


BOTH = (loop_wrapper(5), invoke_action())


async def test_a_loop_runs_until_nothing_is_asked_for() -> None:
    """Turn, calls, results, next turn; the loop stops because no action_call is left (S112..S114, S128)."""
    agent = Searching(three_searches, BOTH, frozenset({"search"}))
    ledger = await agent.run()
    assert agent.thought == [0, 1, 2, 3]
    assert agent.searched == ["q0", "q1", "q2"]
    assert ledger[-2].payload == {"text": "turn 0 turn 1 turn 2 answer"}
    assert lines(ledger)[1:10] == [
        "1 action_call",
        "1/1 action_call",
        "1/1 text",
        "1/1/0 action_call",
        "1/1 action_result",
        "1/1/0 action_result",
        "1/2 action_call",
        "1/2 text",
        "1/2/0 action_call",
    ]


async def test_each_turn_sees_the_results_of_the_earlier_ones() -> None:
    """Combined, a turn's results are in the next one's ledger (S114)."""
    ledgers: list[list[str]] = []

    def answer(turn: int, ledger: Ledger) -> list[Step]:
        ledgers.append([str(s.payload.get("output")) for s in ledger if s.path.count("/") == 2 and "result" in s.type])
        return three_searches(turn, ledger)

    await Searching(answer, BOTH, frozenset({"search"})).run()
    assert ledgers[-1] == ["found q0", "found q1", "found q2"]


async def test_a_loop_stops_at_its_limit_and_returns() -> None:
    """At max_turns the loop is over, whatever is asked for (S112, R2 at the core: no failure)."""
    agent = Searching(
        lambda turn, _: [text("model", "x"), action_call("model", "search", {"q": "again"})],
        (loop_wrapper(2), invoke_action()),
        frozenset({"search"}),
    )
    await agent.run()
    assert agent.thought == [0, 1]


@pytest.mark.parametrize("decorators", [BOTH, (loop_wrapper(5), invoke_action(), invoke_action())])
async def test_a_call_that_was_done_is_not_done_or_told_again(decorators: tuple[Decorator, ...]) -> None:
    """Whoever ran the calls of an answer: each turn sees one result of each call that was asked for (S113, S114)."""
    ledgers: list[list[str]] = []

    def answer(turn: int, ledger: Ledger) -> list[Step]:
        ledgers.append(lines(step for step in ledger if step.type == "action_result"))
        return three_searches(turn, ledger)

    agent = Searching(answer, decorators, frozenset({"search"}))
    await agent.run()
    assert agent.searched == ["q0", "q1", "q2"]
    assert ledgers[-1] == [f"1/{turn}/0 action_result" for turn in (1, 2, 3)]


async def test_only_offered_names_are_called() -> None:
    """A name outside action.actions gives an error result, and nothing runs (S117)."""
    agent = Searching(three_searches, BOTH, frozenset({"other"}))
    ledger = await agent.run()
    assert agent.searched == []
    results = [View(ledger).result(f"1/{n}/0") for n in (1, 2, 3)]
    assert [r.payload["code"] for r in results if r] == ["not_offered"] * 3


async def test_without_invoke_action_nothing_is_done() -> None:
    """An emitted action_call is asked for, not done: doing it is the decorator's (S113, S122)."""
    agent = Searching(three_searches, (), frozenset({"search"}))
    await agent.run()
    assert (agent.thought, agent.searched) == ([0], [])


@pytest.mark.parametrize("after", [False, True])
async def test_no_turn_and_no_search_is_done_twice_over_any_crash(after: bool) -> None:
    """Crash at any record: completed turns are not asked again, and the ledger is the undisturbed one (S119, S120)."""
    whole = Searching(three_searches, BOTH, frozenset({"search"}))
    undisturbed = CrashingJournal()
    await whole.run(undisturbed)
    for n in range(1, len(undisturbed.records) + 1):
        agent = Searching(three_searches, BOTH, frozenset({"search"}))
        journal = CrashingJournal(crash=CrashPoint(n, after))
        with pytest.raises(Crash):
            await agent.run(journal)
        completed = View(journal.ledger)
        done = [turn for turn in range(4) if completed.result(f"1/{turn + 1}")]
        searched = [turn for turn in range(3) if completed.result(f"1/{turn + 1}/0")]
        agent.thought.clear()
        agent.searched.clear()
        final = await agent.run(CrashingJournal(journal.ledger))
        assert differences(final, undisturbed.ledger) == [], n
        assert not set(agent.thought) & set(done), n
        assert agent.searched == [f"q{turn}" for turn in range(3) if turn not in searched], n


async def test_the_search_agent_with_the_model_policy() -> None:
    """Question, search call, result, answer, through the policy `model` and a model API (S116, S128)."""
    provider = ScriptedProvider([says("Let me look.", call("search", q="rain")), says("It rains.")])
    agent = Searching(three_searches, (), frozenset())
    agent.registry.register("model")(model(provider))
    question = Ledger((text("user:1", "Does it rain?"),)).numbered()

    async def ask(action: Action, ctx: Context) -> list[Step]:
        payload: dict[str, Any] = {"ledger": question, "system": "Be brief."}
        return await ctx.call(Action("model", payload, frozenset({"search"})), BOTH)

    agent.registry.register("ask")(ask)
    ledger = await run("ask", {}, agent.registry)
    assert agent.searched == ["rain"]
    assert [tool.name for tool in provider.asked[0].tools] == ["search"]
    assert provider.asked[0].system == "Be brief."
    assert [type(m).__name__ for m in seen(provider.asked[1])] == ["UserMessage", "AssistantMessage", "ResultMessage"]
    assert results_in(provider.asked[1]) == ["found rain"]
    assert [s.payload["text"] for s in ledger if s.type == "text"] == ["Let me look.", "It rains."]


async def test_a_result_that_is_there_is_not_added_again() -> None:
    """Decorated twice, an answer has the result of each call once."""
    agent = Searching(three_searches, (invoke_action(), invoke_action()), frozenset({"search"}))
    await agent.run()
    found = [output for step in agent.answered if (output := step.payload.get("output"))]
    assert (found, agent.searched) == (["found q0"], ["q0"])
