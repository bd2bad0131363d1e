"""Slow models, and models that ask to wait: how long the engine waits, and what it says then."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

import pytest

from agents.engine.errors import ProviderError
from agents.engine.interfaces.provider import Answer, Request, TextDelta
from agents.engine.ledger import Ledger
from agents.engine.limits import Limits
from agents.engine.outputs.kinds import TextOutput
from agents.engine.outputs.timeline import Outputs
from tests.engine.cast import World, site
from tests.engine.support import ScriptedProvider, Site, carry_on, end_of, says


def busy(wait_seconds: float | None) -> ProviderError:
    return ProviderError("Slow down.", code="rate_limited", retryable=True, wait_seconds=wait_seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site where waiting between attempts takes no time, but is counted."""
    services, here, sleep = Site(), threading.get_ident(), asyncio.sleep

    async def wait(seconds: float) -> None:
        if threading.get_ident() != here:  # a server of another test file, in its own thread
            await sleep(seconds)
            return
        services.spent += seconds

    monkeypatch.setattr(asyncio, "sleep", wait)
    return services


def texts(ledger: Ledger) -> list[tuple[str, bool]]:
    """What was said, and whether that is a part of an answer."""
    return [(each.text, each.partial) for each in Outputs(ledger).in_order() if isinstance(each, TextOutput)]


def stopped_by(ledger: Ledger) -> str:
    end = end_of(ledger)
    assert end
    return str(end["stop_reason"])


async def test_a_model_that_is_away_for_a_minute_fails_no_turn(clock: Site) -> None:
    """Its server is restarted on a busy machine: it is asked again until then, less and less often (I2)."""
    away = ProviderError("The model server cannot be reached.", code="unreachable", retryable=True)
    registry, provider = site(ScriptedProvider(lambda _request: away if clock.spent < 60 else says("Done.")))
    ledger = await carry_on(registry, services=clock)
    assert stopped_by(ledger) == "text"
    waits = [step.payload["wait_seconds"] for step in ledger if step.type == "action_retry"]
    assert (waits, len(provider.asked)) == ([1, 2, 4, 8, 15, 30], Limits().attempts)


UP = (
    "Stopped, because the limit of 300 seconds of running ends before the model may be asked again. "
    "Its last error: Slow down."
)
NOT_NOW = "Slow down. The model server asks to wait {} seconds, so it was not asked again: try again after that."


@pytest.mark.parametrize(
    ("wait", "began", "asked", "end"),
    [
        (60.0, 290.0, 1, ("timeout", UP)),
        (60.0, 200.0, 2, ("timeout", UP)),
        (None, 299.5, 1, ("timeout", UP)),
        (60.0, 0.0, 5, ("timeout", UP)),
        (45.0, 0.0, 7, ("model_error", "Slow down.")),
        (61.0, 0.0, 1, ("model_error", NOT_NOW.format(61))),
        (3600.0, 290.0, 1, ("model_error", NOT_NOW.format(3600))),
    ],
)
async def test_nobody_waits_in_vain(
    clock: Site, wait: float | None, began: float, asked: int, end: tuple[str, str]
) -> None:
    """Not beyond the running time, and not for a server that says itself that it will not answer soon (R2, R3)."""
    clock.spent = began
    provider = ScriptedProvider([[busy(wait)]])
    ledger = await carry_on(site(provider)[0], services=clock)
    assert len(provider.asked) == asked
    assert clock.spent < 300
    assert stopped_by(ledger) == end[0]
    assert texts(ledger) == [(end[1], False)]


@pytest.mark.parametrize(("wait", "began"), [(3600.0, 0.0), (60.0, 290.0)])
async def test_the_model_that_stands_in_is_asked_instead_of_waiting(clock: Site, wait: float, began: float) -> None:
    """At once: there is no reason to wait for it."""
    clock.spent = began
    provider = ScriptedProvider(lambda request: says("Here.") if request.tier == "fallback" else busy(wait))
    ledger = await carry_on(site(provider)[0], services=clock, limits=Limits(fallback=True))
    assert [request.tier for request in provider.asked] == ["normal", "fallback"]
    assert clock.spent == began
    assert texts(ledger) == [("Here.", False)]


async def test_time_that_ran_out_while_the_model_failed_is_the_limit_that_ended_the_turn(clock: Site) -> None:
    """No other model is asked, and none is said to have been."""

    def fails_late(request: Request) -> ProviderError:
        clock.spent = 301.0
        return busy(None)

    provider = ScriptedProvider(fails_late)
    ledger = await carry_on(site(provider)[0], services=clock, limits=Limits(fallback=True))
    assert [request.tier for request in provider.asked] == ["normal"]
    assert stopped_by(ledger) == "timeout"
    assert [step for step in ledger if step.type in ("note", "action_retry")] == []


class Slow(ScriptedProvider):
    """A model that says these pieces and then nothing more."""

    async def ask(self, request: Request) -> AsyncGenerator[TextDelta | Answer, None]:
        for piece in self.script:  # type: ignore[union-attr]
            yield TextDelta(str(piece))
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("pieces", "kept"), [(["A long ", "answer"], [("A long answer", True)]), (["\n"], []), ([], [])]
)
async def test_what_was_said_when_the_time_was_up_is_kept(
    world: World, pieces: list[str], kept: list[tuple[str, bool]]
) -> None:
    """Marked as part of an answer; then the limit, with the number that people know (R2)."""
    registry, _ = site(Slow(pieces), world.tools())  # type: ignore[arg-type]
    ledger = await carry_on(registry, services=Site(spent=299.99))
    assert stopped_by(ledger) == "timeout"
    assert texts(ledger) == [*kept, ("Stopped after 300 seconds of running, its limit.", False)]
