"""Runs of workflows: started by name, recorded as turns, gated like any other, and ended with a value or a reason."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from conversations.models import Conversation, Output, Prompt
from conversations.prompts.start import TurnInProgress, start_conversation, start_prompt
from conversations.prompts.startable import InvalidInput, NotAllowed
from conversations.verification.stored import verify
from tests.conversations.recorded import Site, pending
from tests.conversations.support import person
from tests.engine.support import says, seen
from tests.workflows import shop
from workflows.models import WorkflowSetting
from workflows.running import start_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(db: None) -> User:
    return person("ann")


@pytest.fixture(autouse=True)
def model(site: Site, monkeypatch: pytest.MonkeyPatch) -> Any:
    with shop.installed(site, monkeypatch) as provider:
        yield provider


def result_of(prompt: Prompt) -> Any:
    return Output.objects.get(prompt=prompt, type="result").entry().model_dump()["output"]


def problems(prompt: Prompt) -> list[str]:
    return [str(problem) for problem in verify(prompt.conversation_id).problems]


def test_a_run_has_a_conversation_of_its_own_and_waits_for_people(ann: User, site: Site) -> None:
    run = start_run(shop.order, ann, {"item": "paper", "pieces": 3})
    assert (run.policy, run.origin, run.conversation.kind) == ("workflow:shop.order", "workflow", "run")
    assert (run.input, run.conversation.title) == ("/shop.order item=paper pieces=3", "Order something")
    site.works()
    (gate,) = pending(run)
    site.approves(run, ann)
    site.works()
    run.refresh_from_db()
    assert gate.path == "1"
    assert (run.state, result_of(run)) == ("completed", {"ordered": "paper"})
    assert site.world.done == [("shell.run", "order 3 paper")]
    assert problems(run) == []


def test_an_input_that_it_does_not_accept_starts_nothing(ann: User) -> None:
    with pytest.raises(InvalidInput) as raised:
        start_run(shop.order, ann, {"item": "a", "pieces": 1000})
    assert set(raised.value.fields) == {"item", "pieces"}
    assert not Conversation.objects.exists()


def test_a_run_that_raises_is_failed_with_its_reason(ann: User, site: Site) -> None:
    run = start_run(shop.fail, ann, {})
    site.works()
    run.refresh_from_db()
    texts = [row.entry().model_dump()["text"] for row in Output.objects.filter(prompt=run, type="text")]
    assert (run.state, texts) == ("failed", ["ValueError: The shop is closed."])
    assert problems(run) == []


def test_a_workflow_within_another_belongs_to_the_same_run(ann: User, site: Site) -> None:
    run = start_run(shop.nested, ann, {})
    for _ in range(2):
        site.works()
        site.approves(run, ann)
    site.works()
    run.refresh_from_db()
    assert (run.state, result_of(run)) == ("completed", [{"ordered": "paper"}, {"ordered": "pens"}])
    assert site.world.done == [("shell.run", "order 1 paper"), ("shell.run", "order 1 pens")]
    assert problems(run) == []


def test_who_lost_the_right_meanwhile_runs_nothing_more(ann: User, site: Site) -> None:
    run = start_run(shop.order, ann, {"item": "paper"})
    site.works()
    WorkflowSetting.objects.create(name="shop.order", enabled=False)
    site.approves(run, ann)
    site.works()
    run.refresh_from_db()
    assert (run.state, run.stop_reason, site.world.done) == ("failed", "not_permitted", [])
    with pytest.raises(NotAllowed):
        start_run(shop.order, ann, {"item": "paper"})
    assert problems(run) == []


def test_in_a_chat_later_turns_read_its_line_and_what_came_of_it(ann: User, site: Site, model: Any) -> None:
    """Not what it called: that is the business of the program."""
    chat = start_conversation(ann)
    run = start_run(shop.order, ann, {"item": "paper"}, conversation=chat)
    site.works()
    with pytest.raises(TurnInProgress):
        start_prompt(chat, ann, "Hello?")
    site.approves(run, ann)
    site.works()
    failed = start_run(shop.fail, ann, {}, conversation=chat)
    site.works()
    start_prompt(chat, ann, "What was that?")
    model.script = [says("You ordered paper.")]
    site.works()
    read = [(type(message).__name__, getattr(message, "text", "")) for message in seen(model.asked[0])]
    assert read[:5] == [
        ("UserMessage", "/shop.order item=paper"),
        ("AssistantMessage", '{"ordered": "paper"}'),
        ("UserMessage", "/shop.fail"),
        ("AssistantMessage", "ValueError: The shop is closed."),
        ("UserMessage", "What was that?"),
    ]
    assert (failed.conversation_id, chat.prompts.count()) == (chat.pk, 3)


def test_what_an_input_makes_anew_each_time_is_recorded(ann: User, site: Site) -> None:
    """Else the call that was approved would be another one whenever the run goes on."""
    run = start_run(shop.ticket, ann, {})
    site.works()
    (gate,) = pending(run)
    site.approves(run, ann)
    site.works()
    run.refresh_from_db()
    assert (run.state, site.world.done) == ("completed", [("shell.run", gate.entry().model_dump()["input"]["command"])])
    assert str(run.input).startswith("/shop.ticket number=")
