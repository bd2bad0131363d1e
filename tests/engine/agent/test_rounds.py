"""Rounds: what the model is asked, what a failing model does, and the budgets."""

import logging
from typing import Any

import pytest

from agents.engine import Action, Context, PolicyRegistry, Step, run
from agents.engine.errors import ProviderError
from agents.engine.interfaces.provider import Answer
from agents.engine.ledger import text
from agents.engine.limits import Limits
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.tool import wire_name
from agents.engine.view import View
from tests.engine.cast import World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.support import ScriptedProvider, Site, call, carry_on, decide, end_of, lines, results_in, says, seen


def ended(ledger: Any) -> tuple[str, str]:
    end = end_of(ledger)
    assert end
    return end["state"], end["stop_reason"]


async def test_an_answer_without_calls_ends_the_turn(world: World) -> None:
    """Its text is the output, one end, usage in it (S21, S44)."""
    registry, provider = site([says("Hello.")], world.tools(), prompt="Be kind.")
    services = Site()
    journal = CrashingJournal()
    ledger = await carry_on(registry, journal=journal, services=services)
    assert lines(ledger)[-3:] == ["1 text", "1 action_result", ". action_result"]
    assert len(journal.records) == 2
    assert ended(ledger) == ("completed", "text")
    assert services.drafts == [("1", "Hello.")]
    request = provider.asked[0]
    assert (request.system, request.tier) == ("Be kind.", "normal")
    assert [t.name for t in request.tools] == [wire_name(each.name) for each in world.tools()]
    assert next(t for t in request.tools if t.name == "fx_read").schema["properties"]["a"]["type"] == "integer"


async def test_what_the_model_saw_is_kept_once_per_content(world: World) -> None:
    """System text and tools are a snapshot that the round's start names."""
    registry, _ = site([says("", call("fx.read", a=1)), says("Done.")], world.tools())
    journal = CrashingJournal()
    ledger = await carry_on(registry, journal=journal)
    starts = [step.payload for step in ledger if step.type == "action_start"]
    snapshots = {name for record in journal.records for name in record.snapshots}
    assert {start["snapshot"] for start in starts} == snapshots
    assert len(snapshots) == 1
    assert starts[0]["history"]["digest"] != starts[1]["history"]["digest"]


async def test_the_round_limit_fails_the_turn_and_says_so(world: World) -> None:
    """failed, max_rounds, everything kept, and a visible text by the system (R2, S26, S87)."""
    registry, provider = site(lambda request: says("", call("fx.read", a=1)), world.tools(), rounds=4)
    ledger = await carry_on(registry)
    assert ended(ledger) == ("failed", "max_rounds")
    last = Outputs(ledger).in_order()[-1]
    assert last.model_dump(include={"type", "text", "role_hint"}) == {
        "type": "text",
        "text": "Stopped after 4 rounds, the limit of one turn.",
        "role_hint": "system",
    }
    assert len(provider.asked) == 4
    assert ["Only" in request.system for request in provider.asked] == [False, False, True, True]


async def test_the_log_warns_of_a_turn_that_was_stopped(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever runs the site sees which turn used up its rounds; one that ends by itself is not told (S53)."""
    with caplog.at_level(logging.WARNING):
        await carry_on(site([says("Done.")])[0])
        assert caplog.records == []
        await carry_on(
            site(lambda _: says("", call("fx.read", a=1)), world.tools(), rounds=2)[0], services=Site(prompt=7)
        )
    (line,) = caplog.records
    assert (line.levelname, line.getMessage()) == ("WARNING", "a turn was stopped: max_rounds")
    assert (line.__dict__["prompt"], line.__dict__["path"]) == (7, "")


async def test_the_budget_is_shared_over_pauses(world: World) -> None:
    """Rounds used before a pause stay used (S86, S97)."""
    registry, provider = site(lambda request: says("", call("shell.run", command="x")), world.tools(), rounds=3)
    ledger = await carry_on(registry, limits=Limits(rounds=3))
    left = [ledger[-1].payload["steps_remaining"]]
    for n in (1, 2):
        ledger = await carry_on(registry, decide(ledger, f"{n}/0/human"), limits=Limits(rounds=3))
        left.append(ledger[-1].payload["steps_remaining"])
    final = await carry_on(registry, decide(ledger, "3/0/human"), limits=Limits(rounds=3))
    assert left == [2, 1, 0]
    assert ended(final) == ("failed", "max_rounds")
    assert len(provider.asked) == 3


async def test_running_too_long_begins_nothing_more(world: World) -> None:
    """300 s of running time: no call starts and the model is not asked; a replay is not stopped by it (R3, S54)."""
    calls = (call("shell.run", command="x"), call("fx.read", a=1))
    registry, provider = site([says("", *calls), says("Done.")], world.tools())
    waiting = await carry_on(registry)
    late = Site(spent=300.0)
    assert await carry_on(registry, waiting, services=late) == waiting
    ledger = await carry_on(registry, decide(waiting, "1/0/human"), services=late)
    assert ended(ledger) == ("failed", "timeout")
    assert world.done == []
    for path in ("1/0", "1/1"):
        result = View(ledger).result(path)
        assert result
        assert result.payload["code"] == "timeout"
        assert result.payload["message"] == "Not started after 300 seconds of running, the limit of the turn."
    assert len(provider.asked) == 1


FLAKY = ProviderError("Overloaded.", code="overloaded", retryable=True, wait_seconds=0)


async def test_a_model_that_fails_in_passing_is_asked_again(world: World) -> None:
    """Every attempt is on record with why it failed; the model's messages do not change."""
    registry, provider = site([[FLAKY, FLAKY, says("Done.")]])
    ledger = await carry_on(registry)
    assert ended(ledger) == ("completed", "text")
    assert lines(ledger)[2:7] == [f"1 action_{kind}" for kind in ("start", "retry", "start", "retry", "start")]
    retry = next(step for step in ledger if step.type == "action_retry")
    assert retry.payload == {"attempt": 1, "code": "overloaded", "message": "Overloaded.", "wait_seconds": 0}
    assert len({tuple(request.history) for request in provider.asked}) == 1


async def test_a_model_that_keeps_failing_fails_the_turn(world: World) -> None:
    """model_error after seven attempts, counted over a crash (R2)."""
    registry, provider = site([[FLAKY]])
    ledger = await carry_on(registry)
    assert ended(ledger) == ("failed", "model_error")
    assert len(provider.asked) == 7
    registry, provider = site([[FLAKY]])
    journal = CrashingJournal(crash=CrashPoint(4))
    try:
        await carry_on(registry, journal=journal)
    except Crash:
        ledger = await carry_on(registry, journal.ledger)
    assert sum(1 for step in ledger if step.type == "action_retry") == 6
    assert ended(ledger) == ("failed", "model_error")


async def test_what_cannot_succeed_is_not_asked_again(world: World) -> None:
    """A refused request fails the turn at once."""
    registry, provider = site([[ProviderError("No such model.", code="not_found")]])
    ledger = await carry_on(registry)
    assert ended(ledger) == ("failed", "model_error")
    assert len(provider.asked) == 1


async def test_a_stream_that_breaks_is_asked_again(world: World) -> None:
    """A stream that ends without its answer is no answer."""

    class Breaks(ScriptedProvider):
        async def ask(self, request: Any) -> Any:
            self.asked.append(request)
            if len(self.asked) > 1:
                yield says("Whole.")

    breaks = Breaks([])
    registry, _ = site(breaks)
    journal = CrashingJournal(crash=CrashPoint(99))
    ledger = await carry_on(registry, journal=journal, limits=Limits(attempts=1))
    assert ended(ledger) == ("failed", "model_error")
    assert "before the answer was complete" in str(Outputs(ledger).in_order()[-1])


async def test_usage_adds_up_over_rounds_and_pauses(world: World) -> None:
    """All answers of the turn, also those before a pause; the models that gave them (S39)."""
    registry, _ = site(
        [says("", call("shell.run", command="x")), says("", call("fx.read", a=1)), says("!")], world.tools()
    )
    ledger = await carry_on(registry, decide(await carry_on(registry), "1/0/human"))
    end = end_of(ledger)
    assert end
    assert (end["usage"]["input_tokens"], end["usage"]["output_tokens"]) == (30, 15)
    assert end["usage"]["models"] == ["test-1"]


async def test_arguments_that_do_not_parse_are_an_error_the_model_sees(world: World) -> None:
    """`raw` is kept, and the result is invalid_input; the loop goes on (S27)."""
    registry, provider = site([says("", call("fx.read", "c1", "{a: 1")), says("Done.")], world.tools())
    ledger = await carry_on(registry)
    asked = View(ledger).call("1/0")
    assert asked
    assert asked.payload == {"policy": "fx.read", "payload": {}, "call_id": "c1", "raw": "{a: 1"}
    assert results_in(provider.asked[1]) == ["Error (invalid_input): The arguments are not a JSON object: '{a: 1'"]


async def test_an_agent_is_a_policy_that_a_workflow_may_call(world: World) -> None:
    """It sees its payload only, pauses its caller, and its last words are its output (R13)."""
    registry, provider = site([says("Let me.", call("shell.run", command="x")), says("It is so.")], world.tools())

    @registry.register("flow")
    async def flow(action: Action, ctx: Context) -> list[Step]:
        steps = await ctx.call(Action("agent", {"text": "Is it so?"}))
        return [text("policy:flow", steps[-1].payload["output"])]

    waiting = await run("flow", {}, registry)
    ledger = await run("flow", {}, registry, decide(waiting, "1/1/0/human"))
    assert world.done == [("shell.run", "x")]
    assert ledger[-2].payload == {"text": "It is so."}
    assert [m.text for m in seen(provider.asked[0])] == ["Is it so?"]  # type: ignore[union-attr]


async def test_a_failed_agent_is_an_error_to_its_workflow(world: World) -> None:
    """The workflow sees it as data and goes on (S123)."""
    registry, _ = site(lambda request: Answer(calls=(call("fx.read", a=1),)), world.tools(), rounds=1)

    @registry.register("flow")
    async def flow(action: Action, ctx: Context) -> list[Step]:
        steps = await ctx.call(Action("agent", {"text": "?"}))
        return [text("policy:flow", steps[-1].payload["code"])]

    ledger = await run("flow", {}, registry)
    assert ledger[-2].payload == {"text": "max_rounds"}


async def test_a_pause_counts_against_the_agents_own_budget(world: World) -> None:
    """An agent that was registered with a budget of its own pauses and resumes with what is left of that (S84, S86)."""
    registry, _ = site([says("I will.", call("shell.run", command="ls")), says("Done.")], world.tools(), rounds=3)
    ledger = await carry_on(registry)
    paused = View(ledger).at("", "pause")[-1].payload
    assert (paused["steps_used"], paused["steps_remaining"]) == (1, 2)


async def test_a_path_that_no_journal_could_keep_is_refused(world: World) -> None:
    """The call fails where it stands, and says why; it is not tried for ever."""
    registry = PolicyRegistry()

    @registry.register("deep")
    async def deep(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("deep"), key="k" * 201)

    end = View(await run("deep", {}, registry)).result("")
    assert end
    assert (end.payload["code"], "has 201 characters" in end.payload["message"]) == ("too_deep", True)
