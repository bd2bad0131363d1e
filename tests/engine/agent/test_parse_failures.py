"""Answers that cannot be read: the model is told, and asked again, three times in a row at most (S51, R3)."""

from __future__ import annotations

import logging
from contextlib import suppress

import pytest

from agents.engine import Ledger
from agents.engine.interfaces.messages import AssistantMessage, UserMessage
from agents.engine.interfaces.provider import Answer
from agents.engine.limits import Limits
from agents.engine.outputs.kinds import RetryOutput, TextOutput
from agents.engine.outputs.timeline import Outputs
from agents.engine.view import View
from tests.engine.cast import Counting, World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.sound import problems
from tests.engine.support import Site, call, carry_on, end_of, garbled, lines, says, seen

RAW = '{"tool": "fx.read", "parameters"'
AGAIN = [garbled(RAW), says("", call("fx.read", a=1)), says("Done.")]


def ended(ledger: Ledger) -> tuple[str, str]:
    end = end_of(ledger)
    assert end
    return end["state"], end["stop_reason"]


async def test_the_model_is_told_what_was_wrong_and_asked_again(world: World) -> None:
    """It reads its own words and the error; people see neither as an answer; nothing of it was on its way (S51)."""
    registry, provider = site(AGAIN, world.tools())
    services = Site()
    ledger = await carry_on(registry, services=services)
    assert ended(ledger) == ("completed", "text")
    result = View(ledger).result("1")
    assert result
    assert result.payload == {
        "error": True,
        "code": "parse_failure",
        "message": "The tool is missing. This was try 1 of 3.",
        "raw": RAW,
        "usage": {"input_tokens": 10, "output_tokens": 5},
        "model": "test-1",
        "finish": "stop",
    }
    told = seen(provider.asked[1])
    error = "[error] The tool is missing. This was try 1 of 3. Try again."
    assert told[1:] == [AssistantMessage(RAW), UserMessage(error)]
    outputs = Outputs(ledger).in_order()
    assert [type(o) for o in outputs if o.path == "1"] == [RetryOutput]
    assert RAW not in [o.text for o in outputs if isinstance(o, TextOutput)]
    assert services.drafts == [("3", "Done.")]
    assert all(problems(seen(request)) == [] for request in provider.asked)


async def test_what_it_used_counts_like_any_other_answers(world: World) -> None:
    """One step of the budget and its tokens (R4, S39)."""
    registry, provider = site(AGAIN, world.tools(), rounds=3)
    end = end_of(await carry_on(registry))
    assert end
    assert end["usage"]["input_tokens"] == 30
    assert len(provider.asked) == 3
    registry, _ = site(AGAIN, world.tools(), rounds=2)
    assert ended(await carry_on(registry)) == ("failed", "max_rounds")


async def test_three_in_a_row_end_the_turn(world: World) -> None:
    """parse_failures, with a text that says so, and each of them on record (S51, R2, R3)."""
    registry, provider = site(lambda _: garbled(RAW), world.tools())
    ledger = await carry_on(registry)
    assert ended(ledger) == ("failed", "parse_failures")
    assert len(provider.asked) == 3
    notice = Outputs(ledger).in_order()[-1]
    assert isinstance(notice, TextOutput)
    assert notice.role_hint == "system"
    assert notice.text == "Stopped because 3 answers of the model in a row could not be read."
    assert lines(ledger).count("3 action_result") == 1


async def test_one_that_can_be_read_begins_the_count_anew(world: World) -> None:
    """Only failures in a row end a turn (R3)."""
    bad, good = garbled(RAW), says("", call("fx.read", a=1))
    registry, _ = site([bad, bad, good, bad, bad, says("Done.")], world.tools())
    assert ended(await carry_on(registry)) == ("completed", "text")
    registry, _ = site([bad, good, bad, bad, bad], world.tools())
    assert ended(await carry_on(registry)) == ("failed", "parse_failures")


@pytest.mark.parametrize("own", [None, 2])
async def test_how_many_is_the_sites_or_the_agents_own(world: World, own: int | None) -> None:
    """A keyword of the agent, with the site's setting where it is left out (R3)."""
    registry, provider = site(lambda _: garbled(RAW), world.tools(), parse_failures=own)
    ledger = await carry_on(registry, limits=Limits(parse_failures=4))
    assert ended(ledger) == ("failed", "parse_failures")
    assert len(provider.asked) == (own or 4)


@pytest.mark.parametrize("after", [False, True])
async def test_the_count_survives_a_crash(after: bool) -> None:
    """Wherever the process dies: three answers in a row are recorded, and what plugins said before them."""
    for n in range(1, 5):
        registry, _ = site(lambda _: garbled(RAW), World().tools(), [Counting()])
        journal = CrashingJournal(crash=CrashPoint(n, after))
        with suppress(Crash):
            await carry_on(registry, journal=journal)
        ledger = journal.ledger if end_of(journal.ledger) else await carry_on(registry, journal.ledger)
        assert ended(ledger) == ("failed", "parse_failures"), n
        results = [step for step in ledger if step.type == "action_result" and step.path]
        tries = [step.payload["message"].rpartition(" This was ")[2] for step in results]
        assert tries == ["try 1 of 3.", "try 2 of 3.", "try 3 of 3."], n
        assert [step.payload["value"]["prepared"] for step in ledger if step.type == "state"] == [1, 2, 3], n


async def test_the_log_says_where_it_stands_and_not_what(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The ledger holds the raw answer; logs carry nobody's words (S51, C20)."""
    registry, _ = site(AGAIN, world.tools())
    with caplog.at_level(logging.WARNING):
        await carry_on(registry)
    (line,) = caplog.records
    assert "could not be read" in line.getMessage()
    assert (line.path, line.prompt) == ("1", 1)  # type: ignore[attr-defined]
    assert RAW not in str(vars(line))


async def test_native_arguments_that_do_not_parse_are_no_parse_failure(world: World) -> None:
    """The call is refused, and the answer was read: it may go on for all rounds of the turn (S27, R3)."""
    broken: Answer = says("", call("fx.read", "", "{a: 1"))
    registry, _ = site(lambda _: broken, world.tools(), rounds=5)
    assert ended(await carry_on(registry)) == ("failed", "max_rounds")
