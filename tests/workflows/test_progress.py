"""Progress: how far a run says that it is, on record now and then, and on the page at once."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.testing import Trials, TrialServices
from conversations.models import Output, Prompt
from conversations.verification.stored import verify
from tests.conversations.recorded import Site
from tests.workflows import shop
from workflows import Flow, workflow
from workflows.running import start_run

SAID = [(0, 4, "Counting"), (1, 4, "One"), (2, 4, "Two"), (3, 4, "Three")]


@workflow("shop.count", category=shop.SHOP)
async def count(flow: Flow[Any]) -> None:
    """Counts to four, and says so."""
    for said in SAID:
        flow.progress(*said)
        await flow.tool("fx.read", a=said[0])
    flow.progress(4, 4, "Done")


class Hours(TrialServices):
    """A trial whose clock goes on by this many seconds whenever it is asked."""

    step = 0.0

    def now(self) -> Any:
        from datetime import timedelta

        self.ahead += timedelta(seconds=self.step)
        return super().now()


def told(trial: Any) -> list[tuple[float, str]]:
    return [(step.payload["done"], step.payload["text"]) for step in trial.ledger if step.type == "progress"]


def of_trial(seconds: float = 0.0, dies_at: int | None = None) -> Any:
    from tests.engine.cast import World

    services = Hours()
    services.step = seconds
    return Trials(services, dies_at=dies_at).run(count.registered, tools=World().tools(), input={})


def test_the_first_and_the_last_are_recorded_and_one_a_second_between() -> None:
    assert told(of_trial()) == [(0, "Counting"), (4, "Done")]
    assert told(of_trial(seconds=2)) == [(0, "Counting"), (1, "One"), (2, "Two"), (3, "Three"), (4, "Done")]


def test_people_see_one_output_that_keeps_its_place_and_models_read_nothing() -> None:
    trial = of_trial(seconds=2)
    (output,) = (output for output in trial.outputs if output.type == "progress")
    first = next(step for step in trial.ledger if step.type == "progress")
    assert (output.position, output.done, output.total, output.text) == (first.id, 4, 4, "Done")
    assert "Counting" not in str(trial.messages)
    assert "Done" not in str(trial.messages)


@pytest.mark.parametrize("dies_at", range(2, 9))
def test_what_was_recorded_is_not_said_again(dies_at: int) -> None:
    assert told(of_trial(seconds=2, dies_at=dies_at)) == [(n, text) for n, _, text in SAID] + [(4, "Done")]


@pytest.mark.parametrize("wrong", [(-1,), (float("nan"),), ("1",), (True,), (1, "2"), (1, 2, 3)])
def test_what_is_no_progress_is_refused(wrong: Any) -> None:
    @workflow("shop.wrong")
    async def says(flow: Flow[Any]) -> None:
        flow.progress(*wrong)

    assert Trials().run(says.registered, input={}).state == "failed"


@pytest.mark.django_db
def test_it_stands_with_the_run_and_its_ledger_verifies(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop.installed(site, monkeypatch, workflows=(count,)):
        run = start_run(count, ann, {})
        site.works()
    run = Prompt.objects.get(pk=run.pk)
    assert (run.state, verify(run.conversation_id).problems) == ("completed", [])
    assert Output.objects.get(prompt=run, type="progress").entry().model_dump()["text"] == "Done"
