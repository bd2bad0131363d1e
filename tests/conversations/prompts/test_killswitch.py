"""The kill switch: nothing begins or goes on while it is on, and all of it is said (C25)."""

from __future__ import annotations

import asyncio
from io import StringIO

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import Client
from django.urls import reverse

from agents.engine.tools.tool import ToolCall, tool
from conversations.approvals.decisions import decide
from conversations.ledger.claims import claim, claimable
from conversations.ledger.locked import locked_turn
from conversations.models import KillSwitch, Origin, Output, Prompt, State, Worker
from conversations.models import Step as Row
from conversations.prompts import killswitch
from conversations.prompts.killswitch import SiteStopped, active_switch, enforce, turn_off, turn_on
from conversations.prompts.start import continue_prompt, start_conversation, start_prompt
from conversations.verification.stored import verify
from conversations.worker.drafts import Drafts
from conversations.worker.runner import Runner
from tests.api.client import error_of, with_key
from tests.conversations.recorded import LEASE, ONE_GATE, Site, at_once, in_this_thread, meddle, pending, taken
from tests.conversations.support import Story, person
from tests.conversations.worker.test_drafts import Streaming
from tests.engine.cast import Command
from tests.engine.cast import site as cast_site
from tests.engine.support import says
from tests.idle import new_drain, until_idle

pytestmark = pytest.mark.django_db
PAGE = "/admin/conversations/killswitch/"


@pytest.fixture
def chief() -> User:
    return person("chief", first_name="Mara", is_superuser=True, is_staff=True)


def test_what_waits_stays_and_goes_on_when_it_is_turned_off(ann: User, chief: User, site: Site) -> None:
    """A decision is taken meanwhile, and wakes nothing."""
    waits = site.runs(ann, *ONE_GATE)
    queued = start_prompt(start_conversation(ann), ann, "Later.")
    turn_on(chief, "Something is wrong.")
    (gate,) = pending(waits)
    decide(gate.pk, ann, "approve", digest=gate.digest, via="page")
    assert claimable(10) == []
    assert [claim(prompt.pk, "worker:test", LEASE) for prompt in (waits, queued)] == [None, None]
    assert enforce() == 0
    assert not Row.objects.filter(type="cancel").exists()
    assert turn_off(chief) is True
    assert set(claimable(10)) == {waits.pk, queued.pk}
    claimed = claim(waits.pk, "worker:test", LEASE)
    assert claimed
    meddle("UPDATE conversations_prompt SET lease_until = 0")
    site.works()
    waits.refresh_from_db()
    assert (waits.state, site.world.done) == (State.COMPLETED, [("shell.run", "a")])


def test_a_turn_that_was_taken_and_had_not_begun_queues_on(ann: User, chief: User, site: Site) -> None:
    """It is given back as it was, and begins when the switch is off."""
    prompt = site.starts(ann, says("Hello."))
    held = claim(prompt.pk, "worker:test", LEASE)
    assert held
    runner = Runner(held, "worker:test", in_this_thread, Drafts(in_this_thread), lambda: True)
    runner.kill(turn_on(chief, "Something is wrong."))
    async_to_sync(runner)()
    prompt.refresh_from_db()
    assert (prompt.state, prompt.lease_until) == (State.QUEUED, 0)
    assert [row.type for row in Row.objects.filter(prompt=prompt)] == ["action_call"]
    turn_off(chief)
    site.works()
    prompt.refresh_from_db()
    assert prompt.state == State.COMPLETED


def test_what_runs_is_stopped_by_whoever_turned_it_on(ann: User, chief: User, site: Site) -> None:
    """In the midst of an effect: the worker that holds the turn ends it, as with any stop."""

    @tool("shell.run", approval=False)
    async def shell(call: ToolCall[Command]) -> str:
        """Run a command."""
        await site.aside(turn_on, chief, "Stop it.")
        return "never recorded as done"

    site.monkeypatch.setattr(site.world, "tools", lambda: [shell])
    prompt = site.runs(ann, *ONE_GATE)
    cancel = Row.objects.get(prompt=prompt, type="cancel")
    assert (cancel.actor, cancel.content["reason"]) == (f"user:{chief.pk}", "Kill switch: Stop it.")
    assert prompt.state == State.CANCELLED
    assert verify(prompt.conversation_id).problems == []


@pytest.mark.django_db(transaction=True)
def test_what_runs_ends_also_where_that_cannot_be_written_yet(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C25: whoever holds it reads the switch and the stop mark, whatever fails; who stopped it is recorded first."""

    def refused() -> None:
        raise OperationalError("attempt to write a readonly database")

    def turned_on() -> None:
        KillSwitch.objects.create(on_by="system", reason="A leak.")
        Worker.objects.update(stopping=True)

    async def waits(number: int) -> None:
        if number:
            await drain.write(turned_on)
            async with asyncio.timeout(20):
                await asyncio.Event().wait()

    monkeypatch.setattr(killswitch, "enforce", refused)
    prompt = site.starts(ann)
    registry, _ = cast_site(Streaming([says("Slow and long.")], between=waits), site.world.tools())
    monkeypatch.setattr("agents.registry.policies", lambda: registry)
    drain = new_drain()
    assert async_to_sync(until_idle)(drain) == 1
    prompt.refresh_from_db()
    assert (prompt.state, drain.stopping) == (State.CANCELLED, True)
    said = [step for step in Row.objects.filter(prompt=prompt).order_by("seq") if step.type in ("cancel", "text")]
    assert [(step.actor, step.type) for step in said] == [("system", "cancel"), ("model", "text")]
    assert said[0].content["reason"] == "Kill switch: A leak."
    assert verify(prompt.conversation_id).problems == []


def test_a_turn_whose_worker_was_lost_ends_at_the_next_sweep(ann: User, chief: User, site: Site) -> None:
    """Nobody would claim it to end it: the sweep does, and one whose worker lives is left to that."""
    lost, held = (site.starts(ann, says("Unused.")) for _ in range(2))
    for prompt in (lost, held):
        taken(prompt)
        meddle("UPDATE conversations_prompt SET state = 'running' WHERE id = %s", [prompt.pk])
    KillSwitch.objects.create(on_by=f"user:{chief.pk}", reason="The process died here.")
    meddle("UPDATE conversations_prompt SET lease_until = 1 WHERE id = %s", [lost.pk])
    assert enforce() == 2
    lost.refresh_from_db()
    held.refresh_from_db()
    assert (lost.state, held.state) == (State.CANCELLED, State.RUNNING)
    assert enforce() == 0
    meddle("UPDATE conversations_prompt SET lease_until = 1 WHERE id = %s", [held.pk])
    assert enforce() == 1
    held.refresh_from_db()
    assert (held.state, Row.objects.filter(prompt=held, type="cancel").count()) == (State.CANCELLED, 1)


def test_nobody_starts_anything_and_the_system_queues(ann: User, chief: User) -> None:
    story = Story(ann)
    failed = story.ends("failed", "model_error")
    Prompt.objects.filter(pk=failed.pk).update(fence=1)
    turn_on(chief, "A leak.")
    talk = start_conversation(ann)
    with pytest.raises(SiteStopped, match=r"stopped by Mara \(A leak\)"):
        start_prompt(talk, ann, "Hi.")
    with pytest.raises(SiteStopped):
        continue_prompt(failed.pk, ann)
    with pytest.raises(SiteStopped):
        start_prompt(talk, ann, None, origin=Origin.API)
    assert start_prompt(talk, None).state == State.QUEUED
    error = error_of(with_key(ann).post(f"/api/conversations/{talk.pk}/prompts/", {"input": "Hi."}), 503)
    assert (error["code"], "A leak" in error["message"]) == ("stopped", True)


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
def test_a_page_keeps_the_text_and_says_why(client: Client, ann: User, chief: User, headers: dict[str, str]) -> None:
    turn_on(chief, "A <b>leak</b>\u202e.")
    client.force_login(ann)
    talk = start_conversation(ann)
    answer = client.post(reverse("say", args=[talk.pk]), {"input": "A long thought."}, headers=headers)
    assert answer.status_code == 409
    assert ("Your text is still here." if headers else "A long thought.") in answer.text
    assert "All work is stopped" in answer.text
    assert "<b>leak</b>" not in answer.text
    for page in (talk.get_absolute_url(), reverse("home"), reverse("account"), reverse("sheet", args=[talk.pk])):
        html = client.get(page).text
        assert "All work is stopped</strong> by Mara" in html, page
        assert "U+202E" in html
    turn_off(chief)
    assert "All work is stopped" not in client.get(talk.get_absolute_url()).text


def test_a_reason_is_kept_as_text_that_a_database_takes(chief: User) -> None:
    assert turn_on(chief, " a\0b ").reason == "a\ufffdb"
    with pytest.raises(ValueError, match="Say why"):
        turn_on(chief, "  ")


def test_it_is_on_once(chief: User, ann: User) -> None:
    """Whoever comes second finds it on, and why."""
    first = turn_on(chief, "One.")
    assert turn_on(ann, "Two.").pk == first.pk
    assert (active_switch(), turn_off(ann), turn_off(ann), active_switch()) == (first, True, False, None)
    assert turn_on(ann, "Three.").pk != first.pk
    for nothing in ("", "  \n"):
        with pytest.raises(ValueError, match="Say why"):
            turn_on(chief, nothing)


@pytest.mark.django_db(transaction=True)
def test_of_ten_who_turn_it_on_at_once_one_does(chief: User) -> None:
    found = at_once(*[lambda n=n: turn_on(chief, f"Number {n}.") for n in range(10)])
    assert {one.pk for one in found if isinstance(one, KillSwitch)} == {KillSwitch.objects.get().pk}
    assert all(isinstance(one, KillSwitch) for one in found), found


def test_a_turn_that_cannot_be_stopped_keeps_no_other_running(
    ann: User, chief: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, other = (site.starts(ann, says("Unused.")) for _ in range(2))
    for prompt in (broken, other):
        taken(prompt)
    meddle("UPDATE conversations_prompt SET state = 'running'")
    real = locked_turn

    def fails(prompt: int) -> object:
        if prompt == broken.pk:
            raise ValueError("poisoned")
        return real(prompt)

    monkeypatch.setattr(killswitch, "locked_turn", fails)
    turn_on(chief, "Stop.")
    assert Row.objects.get(type="cancel").prompt_id == other.pk


def test_the_page_of_the_admin(client: Client, chief: User) -> None:
    """A GET changes nothing; a POST needs a reason."""
    client.force_login(chief)
    assert "Stop all work" in client.get(PAGE, {"turn": "on", "reason": "x"}).text
    assert active_switch() is None
    assert client.post(PAGE, {"turn": "on", "reason": " "}).status_code == 400
    assert client.post(PAGE, {"turn": "sideways"}).status_code == 400
    assert client.post(PAGE, {"turn": "on", "reason": "A leak."}).status_code == 302
    html = client.get(PAGE).text
    for words in ("All work is stopped", "Mara", "A leak.", "Resume work"):
        assert words in html
    start = client.get("/admin/").text
    for words in ("All work is stopped", "A leak.", f'href="{PAGE}"'):
        assert words in start
    client.post(PAGE, {"turn": "off"})
    assert active_switch() is None
    assert "History" in client.get(PAGE).text


def test_only_those_with_the_permission_may(client: Client) -> None:
    staff = person("staff", is_staff=True)
    client.force_login(staff)
    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, {"turn": "on", "reason": "x"}).status_code == 403
    assert PAGE not in client.get("/admin/").text
    client.force_login(person("guard", "use_kill_switch", is_staff=True))
    assert client.post(PAGE, {"turn": "on", "reason": "x"}).status_code == 302
    assert active_switch()


def test_the_command(ann: User) -> None:
    """Where no page can be reached."""

    def told(*args: str) -> str:
        call_command("kill_switch", *args, stdout=(out := StringIO()))
        return out.getvalue()

    with pytest.raises(CommandError, match="--reason"):
        told("on")
    assert "by somebody at the command line: A leak." in told("on", "--reason", "A leak.")
    assert "On since" in told("status")
    assert told("off") == "Off: turns run.\n"


def test_monitors_are_told(client: Client, chief: User) -> None:
    """That it is on, and neither by whom nor why: anybody may ask."""
    assert client.get("/healthz").json()["stopped"] is False
    turn_on(chief, "A leak.")
    answer = client.get("/healthz")
    assert answer.json()["stopped"] is True
    assert "leak" not in answer.text
    assert Output.objects.count() == 0
