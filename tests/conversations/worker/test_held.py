"""The result of a call that only reads waits in memory for the next round's start: what happens until then loses none.

Either it is recorded, or the call is made again by whoever goes on, and has one result in the end.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from agents.engine.errors import Draining
from conversations.ledger.claims import release
from conversations.models import Prompt, Step
from conversations.prompts.killswitch import active_switch, turn_off, turn_on
from conversations.prompts.start import cancel_prompt
from conversations.verification.stored import verify
from conversations.worker.drafts import Drafts
from conversations.worker.runner import Runner
from conversations.worker.services import PromptServices
from tests.conversations.recorded import Site, in_this_thread, meddle, taken
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db

READS = (says("", call("fx.read", a=1)), says("Done."))


def ran_until(site: Site, prompt: Prompt, then: Callable[[Runner], object]) -> None:
    """Run it as a worker does. Once the result is held, and before the next round starts, this happens."""
    runner = Runner(taken(prompt), "worker:test", in_this_thread, Drafts(in_this_thread), lambda: True)
    asks = PromptServices.over_quota

    async def over_quota(services: PromptServices) -> str | None:
        if site.world.done and not happened:
            assert not await in_this_thread(results, prompt), "it is not held"
            happened.append(await in_this_thread(then, runner))
        return await asks(services)

    happened: list[object] = []
    with site.monkeypatch.context() as patched:
        patched.setattr(PromptServices, "over_quota", over_quota)
        async_to_sync(runner)()
    assert happened


def results(prompt: Prompt) -> list[str]:
    return [str(step.content) for step in Step.objects.filter(prompt=prompt, path="1/0", type="action_result")]


def state(prompt: Prompt) -> str:
    prompt.refresh_from_db()
    return str(prompt.state)


def kills(runner: Runner) -> None:
    turn_on(None, "Something is wrong.")
    switch = active_switch()
    assert switch
    runner.kill(switch)


@pytest.mark.parametrize(
    ("then", "ends"),
    [
        (lambda runner: cancel_prompt(runner.claim.prompt, User.objects.get()), "cancelled"),
        (kills, "cancelled"),
        (lambda runner: runner.drain(), "completed"),
    ],
    ids=["its owner stops it", "the kill switch", "its worker stops"],
)
def test_it_is_recorded_before_the_turn_is_left(
    ann: User, site: Site, then: Callable[[Runner], object], ends: str
) -> None:
    prompt = site.starts(ann, *READS)
    ran_until(site, prompt, then)
    (result,) = results(prompt)
    assert "read 1" in result
    turn_off(None)
    site.works()
    assert (state(prompt), site.world.done, results(prompt)) == (ends, [("fx.read", 1)], [result])
    assert verify(prompt.conversation_id).problems == []


def lose(runner: Runner) -> None:
    """Another worker has it, since the lease ran out, and gives it back."""
    meddle("UPDATE conversations_prompt SET lease_until = 1")
    release(taken(Prompt.objects.get()))


@pytest.mark.parametrize(
    "then", [lambda runner: runner.stop(Draining()), lose], ids=["its worker has no time left", "its lease is lost"]
)
def test_the_call_is_made_again_where_it_could_not_be(ann: User, site: Site, then: Callable[[Runner], object]) -> None:
    prompt = site.starts(ann, *READS)
    ran_until(site, prompt, then)
    assert (results(prompt), state(prompt)) == ([], "running")
    site.works()
    (result,) = results(prompt)
    assert "read 1" in result
    assert (state(prompt), site.world.done) == ("completed", [("fx.read", 1)] * 2)
    assert verify(prompt.conversation_id).problems == []
