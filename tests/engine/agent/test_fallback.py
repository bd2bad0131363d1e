"""The fallback model: when it is asked, when not, and what people are told."""

from __future__ import annotations

from contextlib import suppress

import pytest

from agents.engine import Ledger
from agents.engine.agent import attempts
from agents.engine.errors import ProviderError
from agents.engine.interfaces.provider import Answer, Request
from agents.engine.limits import Limits
from agents.engine.outputs.kinds import TextOutput
from agents.engine.outputs.timeline import Outputs
from tests.engine.cast import World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.support import ScriptedProvider, call, carry_on, end_of, says

BUSY = ProviderError("Overloaded.", code="server_error", retryable=True, wait_seconds=0)
EMPTY = ProviderError("The model answered nothing.", code="empty_answer", retryable=True, wait_seconds=0)
CUT = ProviderError("Too many tokens.", code="incomplete")
TOO_LONG = ProviderError("HTTP 400: 9000 tokens are too many.", code="context_overflow")
REFUSED = ProviderError("HTTP 401: a wrong key.", code="refused")


def two(own: Answer | ProviderError, other: Answer | ProviderError) -> ScriptedProvider:
    """A provider whose main model does `own`, which mostly fails, and whose fallback model does `other`."""

    def script(request: Request) -> Answer | ProviderError:
        return other if request.tier == "fallback" else own

    return ScriptedProvider(script)


def tiers(provider: ScriptedProvider) -> list[str]:
    return [request.tier for request in provider.asked]


def last_words(ledger: Ledger) -> str:
    output = Outputs(ledger).in_order()[-1]
    assert isinstance(output, TextOutput)
    return output.text


async def test_where_the_own_model_does_not_answer_another_does() -> None:
    """After the last attempt of its own; the record says which was asked and why."""
    provider = two(BUSY, says("Here I am."))
    ledger = await carry_on(site(provider)[0], limits=Limits(attempts=3, fallback=True))
    assert tiers(provider) == ["normal"] * 3 + ["fallback"]
    assert last_words(ledger) == "Here I am."
    starts = [step.payload for step in ledger if step.type == "action_start"]
    assert [(start["attempt"], start["tier"]) for start in starts] == list(enumerate(tiers(provider), 1))
    (note,) = [step for step in ledger if step.type == "note"]
    assert note.payload == {
        "code": "fallback",
        "message": "The model of tier 'normal' did not answer (server_error), so the fallback model is asked.",
    }
    assert sum(1 for step in ledger if step.type == "action_retry") == 3


async def test_the_fallback_is_asked_sooner_than_a_turn_would_fail() -> None:
    """Somebody waits, and there is another who may answer; it is then given all the time that there is."""
    provider = two(BUSY, BUSY)
    await carry_on(site(provider)[0], limits=Limits(fallback=True))
    assert tiers(provider) == ["normal"] * attempts.OWN_ATTEMPTS + ["fallback"] * Limits().attempts
    assert sum(attempts.BACKOFF_SECONDS[: attempts.OWN_ATTEMPTS - 1]) == 15


async def test_the_next_round_asks_the_own_model_again(world: World) -> None:
    """The fallback applies to one question: each question goes to the turn's own tier first."""
    answers = [says("", call("fx.read", a=1)), says("Done.")]
    provider = two(BUSY, answers[0])

    def script(request: Request) -> Answer | ProviderError:
        return BUSY if request.tier == "normal" else answers[len([t for t in tiers(provider) if t == "fallback"]) - 1]

    provider.script = script
    await carry_on(site(provider, world.tools())[0], limits=Limits(attempts=1, fallback=True))
    assert tiers(provider) == ["normal", "fallback", "normal", "fallback"]


async def test_where_both_fail_the_turn_does() -> None:
    """After as many attempts of the fallback model; without one, after those of the turn's own."""
    for fallback, asked in ((True, ["normal"] * 2 + ["fallback"] * 2), (False, ["normal"] * 2)):
        provider = two(BUSY, BUSY)
        ledger = await carry_on(site(provider)[0], limits=Limits(attempts=2, fallback=fallback))
        assert tiers(provider) == asked
        end = end_of(ledger)
        assert end
        assert (end["state"], end["stop_reason"]) == ("failed", "model_error")
        assert last_words(ledger) == "Overloaded."


@pytest.mark.parametrize("error", [TOO_LONG, REFUSED])
async def test_what_another_model_would_not_mend_does_not_go_to_it(error: ProviderError) -> None:
    """A conversation that is too long, a wrong key: somebody should hear of it, and at once."""
    provider = two(error, says("Hidden."))
    ledger = await carry_on(site(provider)[0], limits=Limits(fallback=True))
    assert tiers(provider) == ["normal"]
    assert error.message in last_words(ledger)


async def test_an_empty_answer_is_asked_for_once_more_and_then_of_another_model() -> None:
    """Whatever attempts are left; one that was cut off before it said anything goes to the other at once."""
    for error, asked in ((EMPTY, ["normal", "normal", "fallback"]), (CUT, ["normal", "fallback"])):
        provider = two(error, says("Something."))
        assert last_words(await carry_on(site(provider)[0], limits=Limits(fallback=True))) == "Something."
        assert tiers(provider) == asked
    provider = ScriptedProvider([[EMPTY, BUSY, says("At last.")]])
    assert last_words(await carry_on(site(provider)[0])) == "At last."


@pytest.mark.parametrize(
    ("error", "asked", "words"),
    [
        (TOO_LONG, 1, "HTTP 400"),
        (EMPTY, 2, "The model answered nothing."),
        (CUT, 1, "Too many"),
        (ProviderError("No answer.", code="timeout"), 1, "No answer."),
    ],
)
async def test_the_last_text_names_what_went_wrong(error: ProviderError, asked: int, words: str) -> None:
    """The error's own words, with its code beside them; the turn's end is a model_error, also after a timeout."""
    provider = two(error, error)
    ledger = await carry_on(site(provider)[0])
    assert last_words(ledger).startswith(words)
    end = end_of(ledger)
    assert end
    assert end["stop_reason"] == "model_error"
    assert next(step.payload["code"] for step in reversed(ledger) if step.actor == "model") == error.code
    assert len(provider.asked) == asked


async def test_where_the_site_has_no_other_model_any_more_the_own_is_asked() -> None:
    """The setting was taken away between the note and the next attempt."""
    ledger = await carry_on(site(two(BUSY, BUSY))[0], limits=Limits(attempts=2, fallback=True))
    noted = ledger[: 1 + next(n for n, step in enumerate(ledger) if step.type == "note")]
    for answer, words in ((says("Here I am."), "Here I am."), (BUSY, "Overloaded.")):
        provider = two(answer, says("Hidden."))
        assert last_words(await carry_on(site(provider)[0], noted, limits=Limits(attempts=2))) == words
        assert tiers(provider) == ["normal"]


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_in_the_middle_goes_on_with_the_right_model(after: bool) -> None:
    """The counts and who is asked are in the ledger: at most one attempt more, and never back to its own (R4)."""
    for n in range(1, 8):
        provider = ScriptedProvider(lambda request: BUSY)
        registry, _ = site(provider)
        limits = Limits(attempts=2, fallback=True)
        journal = CrashingJournal(crash=CrashPoint(n, after))
        with suppress(Crash):
            await carry_on(registry, journal=journal, limits=limits)
        ledger = journal.ledger if end_of(journal.ledger) else await carry_on(registry, journal.ledger, limits=limits)
        assert end_of(ledger), n
        asked = tiers(provider)
        assert asked == sorted(asked, key=["normal", "fallback"].index), (n, asked)
        assert asked.count("normal") + asked.count("fallback") <= 5, n
        assert sum(1 for step in ledger if step.type == "action_retry") == 3, n
        assert sum(1 for step in ledger if step.type == "note") == 1, n
        starts = [step.payload["attempt"] for step in ledger if step.type == "action_start"]
        assert starts == list(range(1, len(starts) + 1)), n
