"""What a decision uses up, in the database: of many decisions at the same moment, never one too many is recorded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import connection

from agents.engine.errors import RegistryError
from agents.engine.grants.grant import Asked
from agents.engine.tools.gatekeeper import GateVerdict
from agents.engine.tools.tool import Tool, ToolCall
from conversations.approvals.gatekeeper import SiteGatekeeper
from conversations.ledger.uses import register_usable, unregister_usable
from conversations.models import Output, Prompt, Quota, State
from conversations.models import Step as Row
from conversations.prompts.start import start_conversation, start_prompt
from conversations.verification.stored import verify
from conversations.worker.drafts import Drafts
from conversations.worker.runner import Runner
from tests.conversations.recorded import ONE_GATE, TWO_GATES, Site, at_once, in_this_thread, meddle, pending, taken

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 50
ENOUGH_FOR = 20


class Granting(SiteGatekeeper):
    """Allows every call by the rule that it names, once all of those that `meet` want to."""

    meet = threading.Barrier(1)
    uses: tuple[str, ...] = ("stub:3",)

    async def decide(self, tool: Tool, call: ToolCall[Any], asked: Asked) -> GateVerdict:
        self.meet.wait(timeout=60)
        return GateVerdict("allow", "rule:3", "Granted for today.", self.uses)


@pytest.fixture(autouse=True)
def _gatekeeper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conversations.worker.runner.SiteGatekeeper", Granting)
    monkeypatch.setattr(Granting, "uses", ("stub:3",))
    monkeypatch.setattr(Granting, "meet", threading.Barrier(1))


@pytest.fixture(autouse=True)
def _stub() -> Iterator[None]:
    """A table of what can be used up, and its entry in the register."""
    meddle("CREATE TABLE stub_grant (id integer PRIMARY KEY, remaining integer NOT NULL)")
    register_usable("stub", take, lambda id: None)
    yield
    unregister_usable("stub")
    meddle("DROP TABLE stub_grant")


def take(id: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE stub_grant SET remaining = remaining - 1 WHERE id = %s AND remaining > 0", [id])
        return bool(cursor.rowcount == 1)


def has(remaining: int, id: int = 3) -> None:
    meddle("INSERT INTO stub_grant (id, remaining) VALUES (%s, %s)", [id, remaining])


def remaining(id: int = 3) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT remaining FROM stub_grant WHERE id = %s", [id])
        return int(cursor.fetchone()[0])


def by_rule(prompts: list[Prompt]) -> list[str]:
    rows = Row.objects.filter(prompt__in=prompts, path="1/0/human", type="action_result")
    return [row.actor for row in rows]


def test_of_fifty_decisions_at_once_never_one_too_many(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty are left: twenty calls run by the rule, and thirty turns wait for a person, who can let them run."""
    Quota.objects.create(user=ann, running_prompts=0)
    has(ENOUGH_FOR)
    first = site.starts(ann, *ONE_GATE)
    prompts = [first, *(start_prompt(start_conversation(ann), ann, "Go.") for _ in range(MANY - 1))]
    monkeypatch.setattr(Granting, "meet", threading.Barrier(MANY))
    drafts = Drafts(in_this_thread)
    runners = [Runner(taken(prompt, 300.0), "worker:test", in_this_thread, drafts, lambda: True) for prompt in prompts]
    came_to = at_once(*(partial(async_to_sync(runner)) for runner in runners))
    assert came_to == [None] * MANY
    assert (remaining(), by_rule(prompts)) == (0, ["rule:3"] * ENOUGH_FOR)
    assert site.world.times == {("shell.run", "a"): ENOUGH_FOR}
    states = [Prompt.objects.get(pk=prompt.pk).state for prompt in prompts]
    assert (states.count(State.COMPLETED), states.count(State.WAITING)) == (ENOUGH_FOR, MANY - ENOUGH_FOR)
    assert Output.objects.pending().filter(prompt__in=prompts).count() == MANY - ENOUGH_FOR
    waiting = next(prompt for prompt, state in zip(prompts, states, strict=True) if state == State.WAITING)
    site.approves(waiting, ann)
    monkeypatch.setattr(Granting, "meet", threading.Barrier(1))
    site.works()
    assert site.world.times == {("shell.run", "a"): ENOUGH_FOR + 1}
    assert [verify(prompt.conversation_id).problems for prompt in prompts] == [[]] * MANY


def test_nothing_is_used_without_its_decision_on_record(ann: User, site: Site) -> None:
    """Of two calls, the second asks a person: what it could not have alone, the refused record has not taken."""
    has(1)
    prompt = site.runs(ann, *TWO_GATES)
    assert (remaining(), [gate.path for gate in pending(prompt)]) == (0, ["1/1"])
    assert by_rule([prompt]) == ["rule:3"]
    assert site.world.done == []
    site.approves(prompt, ann)
    site.works()
    assert site.world.done == [("shell.run", "a"), ("shell.run", "b")]
    assert verify(prompt.conversation_id).problems == []


def test_a_decision_that_uses_two_things_has_both_or_none(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Granting, "uses", ("stub:3", "stub:4"))
    has(5, id=3)
    has(0, id=4)
    prompt = site.runs(ann, *ONE_GATE)
    assert (remaining(3), remaining(4), len(pending(prompt))) == (5, 0, 1)


@pytest.mark.parametrize("name", ["budget:3", "stub:", "stub:x", "stub"])
def test_what_nobody_registered_is_used_up(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """A slip in a gatekeeper lets nothing run: a person is asked, and the log says what is wrong."""
    monkeypatch.setattr(Granting, "uses", (name,))
    prompt = site.runs(ann, *ONE_GATE)
    assert (prompt.state, site.world.done, len(pending(prompt))) == (State.WAITING, [], 1)
    assert (
        f"a decision would use up {name!r}, which is not registered; registered: grant:<id>, stub:<id>" in caplog.text
    )
    assert verify(prompt.conversation_id).problems == []


def test_a_kind_has_one_owner() -> None:
    with pytest.raises(RegistryError, match="'stub' is registered twice"):
        register_usable("stub", take, lambda id: None)
