"""Grants: what a person allowed runs without asking, no call more than they saw, and no longer than they said."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Permission, User
from django.utils import timezone
from pydantic import BaseModel

from agents import discovery
from agents.engine.grants.conditions import Condition, Operator
from agents.engine.grants.grant import Asked, Scope
from agents.engine.interfaces.provider import Answer
from agents.engine.ledger import Step
from agents.engine.tools.tool import NOT_SANDBOXED, SANDBOXED, Risk, Tool, ToolCall, tool
from conversations.approvals.decisions import Conflict, DecisionRefused, decide
from conversations.approvals.gatekeeper import GRANT_GONE, SiteGatekeeper
from conversations.approvals.grants import GRANTS_MOST, NOT_YOURS, Remember, revoke, uncovered
from conversations.backup.after_restore import make_safe
from conversations.erasure.conversations import erase
from conversations.erasure.steps import redact
from conversations.ledger.reading import read_steps
from conversations.models import Grant, Output, Prompt, Quota, State
from conversations.models import Step as Row
from conversations.prompts.start import cancel_prompt, start_conversation, start_prompt
from conversations.verification.rules import problems_of
from conversations.verification.stored import verify
from conversations.worker.drafts import Drafts
from conversations.worker.runner import Runner
from tests.conversations.recorded import Site, at_once, in_this_thread, pending, taken
from tests.engine.cast import World
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db


class Note(BaseModel):
    path: str
    text: str = ""


@dataclass
class Writing(World):
    """A world with a tool that writes notes, declared as a test wants it."""

    facts: tuple[str, ...] = ()
    declared: tuple[tuple[str, Any], ...] = ()

    def tools(self) -> list[Tool]:
        @tool("note.write", risk=Risk.WRITE, approval=True, facts=lambda call: list(self.facts))
        async def write(call: ToolCall[Note]) -> str:
            """Write a note."""
            await self._do(call, call.input.path)
            return "written"

        return [*super().tools(), replace(write, **dict(self.declared))]


@pytest.fixture
def world(site: Site, monkeypatch: pytest.MonkeyPatch) -> Writing:
    site.world = made = Writing()
    monkeypatch.setattr(discovery, "installed", lambda: discovery.Found(tuple(made.tools()), ()))
    return made


EXACT = Remember(Scope.EXACT)


def below(folder: str = "reports/", **more: Any) -> Remember:
    """Any note below this folder."""
    conditions = (Condition("path", Operator.STARTS_WITH, folder), Condition("text", Operator.ANY))
    return Remember(Scope.FIELDS, conditions, **more)


def notes(*paths: str) -> tuple[Answer, ...]:
    """A model that asks for these notes at once, and ends the turn."""
    return says("", *(call("note.write", path=path, text="t") for path in paths)), says("Done.")


def remembered(site: Site, by: User, remember: Remember, path: str = "reports/a", **more: Any) -> Grant:
    """Approve one note with this, and let the turn end."""
    prompt = site.runs(by, *notes(path), **more)
    (gate,) = pending(prompt)
    decide(gate.pk, by, "approve", digest=gate.digest, via="page", remember=remember)
    site.works()
    return Grant.objects.latest("pk")


def refused(gate: Output, by: User, remember: Remember) -> DecisionRefused:
    with pytest.raises(DecisionRefused) as raised:
        decide(gate.pk, by, "approve", digest=gate.digest, via="page", remember=remember)
    assert (Grant.objects.count(), gate.prompt.state) == (0, State.WAITING)
    return raised.value


def deciders(prompt: Prompt) -> list[str]:
    rows = Row.objects.filter(prompt=prompt, type="action_result", path__endswith="/human").order_by("seq")
    return [row.actor for row in rows]


def sound(*prompts: Prompt) -> None:
    assert [verify(prompt.conversation_id).problems for prompt in prompts] == [[]] * len(prompts)


def test_what_was_remembered_runs_without_asking_and_the_ledger_says_by_what(
    ann: User, site: Site, world: Writing
) -> None:
    grant = remembered(site, ann, below())
    prompt = site.runs(ann, *notes("reports/b", "reports/c"))
    assert (prompt.state, deciders(prompt)) == (State.COMPLETED, [f"grant:{grant.pk}"] * 2)
    assert world.done == [("note.write", path) for path in ("reports/a", "reports/b", "reports/c")]
    decision = Row.objects.get(prompt=prompt, path="1/0/human", type="action_result").content
    assert (decision["via"], decision["grant"]) == ("grant", grant.said.recorded())
    grant.refresh_from_db()
    assert grant.used == 2
    assert grant.used_at
    sound(prompt, grant.prompt)


@pytest.mark.parametrize("path", ["private/a", "reports/../private/a", "reports"])
def test_what_it_does_not_cover_asks_a_person(ann: User, site: Site, world: Writing, path: str) -> None:
    remembered(site, ann, below())
    prompt = site.runs(ann, *notes("reports/b", path))
    assert (len(pending(prompt)), deciders(prompt)) == (1, [f"grant:{Grant.objects.get().pk}"])
    assert world.done == [("note.write", "reports/a")], "nothing of the batch runs before all is decided"
    sound(prompt)


def test_an_exact_grant_covers_that_call_alone(ann: User, site: Site, world: Writing) -> None:
    grant = remembered(site, ann, EXACT)
    again, other = site.runs(ann, *notes("reports/a")), site.runs(ann, *notes("reports/b"))
    assert (deciders(again), deciders(other)) == ([grant.actor], [])
    world.facts = ("Overwrites a file.",)
    assert deciders(site.runs(ann, *notes("reports/a"))) == [], "something else was true of the call that was seen"


def test_it_is_another_persons_not_to_give_and_lifts_their_gates_not(
    ann: User, kim: User, site: Site, world: Writing
) -> None:
    """Kim may decide for Ann, but not for good; and what Ann granted is Ann's."""
    prompt = site.runs(ann, *notes("reports/a"))
    assert str(refused(pending(prompt)[0], kim, below())) == f"Nothing was decided. {NOT_YOURS}"
    remembered(site, ann, below())
    assert deciders(site.runs(kim, *notes("reports/b"))) == []


@pytest.mark.parametrize(
    ("declared", "facts", "words"),
    [
        ({"grantable": False}, (), "always asked about"),
        ({"risk": Risk.HIGH}, (), "always asked about"),
        ({}, (f"{NOT_SANDBOXED}: all rights.",), "always asked about"),
        ({"grantable": "exact"}, (), "only exactly this call"),
        ({"grantable": lambda conditions: "That is too much."}, (), "That is too much."),
    ],
)
def test_what_cannot_be_granted(
    ann: User, site: Site, world: Writing, *, declared: dict[str, Any], facts: tuple[str, ...], words: str
) -> None:
    """The tool says so, or what is true of the call does; and what was granted before that counts no longer."""
    world.declared, world.facts = tuple(declared.items()), facts
    (gate,) = pending(site.runs(ann, *notes("reports/a")))
    why = refused(gate, ann, below())
    assert (why.code, words in str(why)) == ("invalid_grant", True)
    world.declared, world.facts = (), ()
    remembered(site, ann, below())
    world.declared, world.facts = tuple(declared.items()), facts
    assert deciders(site.runs(ann, *notes("reports/b"))) == []


def test_four_eyes_are_never_lifted(ann: User, kim: User, site: Site, world: Writing) -> None:
    world.declared = (("four_eyes", True),)
    prompt = site.runs(ann, *notes("reports/a"))
    (gate,) = pending(prompt)
    assert "has to approve each" in str(refused(gate, kim, EXACT))


def test_what_runs_in_a_box_can_be_granted_while_it_is_in_the_box(ann: User, site: Site, world: Writing) -> None:
    world.declared, world.facts = (("risk", Risk.HIGH),), (SANDBOXED,)
    grant = remembered(site, ann, below())
    assert deciders(site.runs(ann, *notes("reports/b"))) == [grant.actor]
    world.facts = ()
    assert deciders(site.runs(ann, *notes("reports/c"))) == []


@pytest.mark.parametrize(
    ("remember", "place", "words"),
    [
        (below("other/"), "remember.conditions.path", "must be allowed too"),
        (Remember(Scope.FIELDS), "remember.conditions", "at least one thing"),
        (below(until=timezone.now() - timedelta(minutes=1)), "remember.until", "still to come"),
        (below(until=datetime.max.replace(tzinfo=timezone.get_fixed_timezone(-60))), "remember.until", "hundred years"),
        (below(uses=0), "remember.uses", "from 1 to"),
        (Remember(Scope.EXACT, (Condition("path", Operator.ANY),)), "remember.conditions", "has none"),
    ],
)
def test_a_grant_that_makes_no_sense_is_refused_and_nothing_is_decided(
    ann: User, site: Site, world: Writing, *, remember: Remember, place: str, words: str
) -> None:
    (gate,) = pending(site.runs(ann, *notes("reports/a")))
    why = refused(gate, ann, remember)
    assert list(why.details) == [place]
    assert words in why.details[place][0]


def test_only_an_approval_is_remembered(ann: User, site: Site, world: Writing) -> None:
    (gate,) = pending(site.runs(ann, *notes("reports/a")))
    with pytest.raises(DecisionRefused, match="Only an approval"):
        decide(gate.pk, ann, "reject", digest=gate.digest, via="page", remember=EXACT)
    assert not Grant.objects.exists()


def test_an_edited_call_is_what_is_remembered(ann: User, site: Site, world: Writing) -> None:
    prompt = site.runs(ann, *notes("private/a"))
    (gate,) = pending(prompt)
    input = {"path": "reports/z", "text": "t"}
    decide(gate.pk, ann, "approve", digest=gate.digest, via="page", input=input, remember=below())
    site.works()
    assert deciders(site.runs(ann, *notes("reports/b"))) == [Grant.objects.get().actor]
    assert deciders(site.runs(ann, *notes("private/a"))) == []
    sound(prompt)


def test_the_same_decision_twice_is_one_grant(ann: User, site: Site, world: Writing) -> None:
    (gate,) = pending(site.runs(ann, *notes("reports/a")))
    for _ in range(2):
        decide(gate.pk, ann, "approve", digest=gate.digest, via="page", remember=below())
    assert Grant.objects.count() == 1


def test_what_was_approved_without_a_grant_gives_none_when_it_is_repeated_with_one(
    ann: User, site: Site, world: Writing
) -> None:
    """Whoever asks for one is not told that all is well."""
    (gate,) = pending(site.runs(ann, *notes("reports/a")))
    decide(gate.pk, ann, "approve", digest=gate.digest, via="page")
    with pytest.raises(Conflict, match="already approved"):
        decide(gate.pk, ann, "approve", digest=gate.digest, via="page", remember=EXACT)
    assert not Grant.objects.exists()


def test_one_person_has_so_many_and_no_more(ann: User, site: Site, world: Writing) -> None:
    grant = remembered(site, ann, below("reports/a"))
    Grant.objects.bulk_create([replaced(grant) for _ in range(GRANTS_MOST - 1)])
    (gate,) = pending(site.runs(ann, *notes("reports/b")))
    with pytest.raises(DecisionRefused, match="as many as one person can have"):
        decide(gate.pk, ann, "approve", digest=gate.digest, via="page", remember=EXACT)
    revoke(ann, grant.pk)
    decide(gate.pk, ann, "approve", digest=gate.digest, via="page", remember=EXACT)


def replaced(grant: Grant) -> Grant:
    """Another grant like this one, for another folder."""
    names = ("user", "tool", "schema", "scope", "warnings", "callers", "prompt", "path")
    other = [{"field": "path", "operator": "is", "value": "x"}, {"field": "text", "operator": "any"}]
    return Grant(conditions=other, **{name: getattr(grant, name) for name in names})


def test_it_ends_when_it_was_said_to(ann: User, site: Site, world: Writing) -> None:
    """In this conversation; until then; so many times; until it is revoked."""
    here = start_conversation(ann)
    remembered(site, ann, below(this_conversation=True), conversation=here)
    both = *notes("reports/a"), *notes("reports/b")  # the model of tests goes on where the conversation is
    assert deciders(site.runs(ann, *both, conversation=here))
    assert deciders(site.runs(ann, *notes("reports/b"))) == []
    Grant.objects.all().delete()
    grant = remembered(site, ann, below(until=timezone.now() + timedelta(hours=1), uses=2))
    assert [deciders(site.runs(ann, *notes("reports/b"))) for _ in range(3)] == [[grant.actor], [grant.actor], []]
    Grant.objects.update(uses=None)
    assert deciders(site.runs(ann, *notes("reports/b")))
    Grant.objects.update(until=timezone.now())
    assert deciders(site.runs(ann, *notes("reports/b"))) == []
    Grant.objects.update(until=None)
    revoke(ann, grant.pk)
    assert deciders(site.runs(ann, *notes("reports/b"))) == []


def _expired(grant: Grant, ann: User) -> None:
    Grant.objects.filter(pk=grant.pk).update(until=timezone.now())


def _revoked(grant: Grant, ann: User) -> None:
    revoke(ann, grant.pk)


def _without_right(grant: Grant, ann: User) -> None:
    ann.groups.clear()
    ann.user_permissions.clear()


def _too_broad(_: Any) -> str:
    return ""  # no sentence, and no leave either


def _fails(_: Any) -> str:
    raise SystemExit("no list")


@pytest.mark.parametrize("rule", [_too_broad, _fails])
def test_a_tool_whose_own_rule_gives_no_leave_grants_nothing(ann: User, site: Site, world: Writing, rule: Any) -> None:
    grant = remembered(site, ann, below())
    world.declared = (("grantable", rule),)
    assert deciders(site.runs(ann, *notes("reports/b"))) == []
    Grant.objects.filter(pk=grant.pk).delete()
    (gate,) = pending(site.runs(ann, *notes("reports/b")))
    assert list(refused(gate, ann, below()).details) == ["remember.conditions"]


@pytest.mark.parametrize("ends", [_expired, _revoked, _without_right])
def test_what_ends_between_the_decision_and_the_start_starts_nothing_and_gives_its_use_back(
    ann: User, site: Site, world: Writing, ends: Any
) -> None:
    """Two notes are decided together; while the first is written, the grant ends."""
    grant = remembered(site, ann, below(uses=5))
    world.at["note.write"] = lambda call: site.aside(ends, grant, ann)
    prompt = site.runs(ann, *notes("reports/b", "reports/c"))
    assert world.done[1:] == [("note.write", "reports/b")]
    error = Row.objects.get(prompt=prompt, path="1/1", type="action_result").content
    assert (error["code"], error["message"]) == ("not_permitted", GRANT_GONE)
    grant.refresh_from_db()
    assert (grant.used, deciders(prompt)) == (1, [grant.actor] * 2)
    sound(prompt)


@pytest.mark.parametrize("waits", [False, True])
def test_a_turn_that_is_stopped_before_the_start_gives_the_use_back(
    ann: User, site: Site, world: Writing, *, waits: bool
) -> None:
    """Whoever ends the turn: its worker, or whoever stops one that waits for a person."""
    grant = remembered(site, ann, below(uses=5))
    if not waits:
        world.at["note.write"] = lambda call: site.aside(lambda: cancel_prompt(Prompt.objects.latest("pk").pk, ann))
    prompt = site.runs(ann, *notes("reports/b", "reports/c", *(["private/d"] if waits else [])))
    if waits:
        assert (prompt.state, used(grant)) == (State.WAITING, 2)
        cancel_prompt(prompt.pk, ann)
    assert Row.objects.get(prompt=prompt, path="1/1", type="action_result").content["code"] == "cancelled"
    assert used(grant) == len(world.done) - 1
    sound(prompt)


def test_what_changed_before_the_start_gives_the_use_back(ann: User, site: Site, world: Writing) -> None:
    def meanwhile(call: ToolCall[Note]) -> None:
        world.facts = ("The disk is full.",)

    grant = remembered(site, ann, below(uses=5))
    world.at["note.write"] = meanwhile
    prompt = site.runs(ann, *notes("reports/b", "reports/c"))
    assert Row.objects.get(prompt=prompt, path="1/1", type="action_result").content["code"] == "changed_since"
    assert used(grant) == 1
    sound(prompt)


def used(grant: Grant) -> int:
    grant.refresh_from_db()
    return grant.used


def test_a_tool_that_changes_voids_it(ann: User, site: Site, world: Writing) -> None:
    """Also if only a field is renamed: the words of the grant are about another tool then."""

    class Renamed(BaseModel):
        file: str
        text: str = ""

    remembered(site, ann, below())
    world.declared = (("input", Renamed),)
    prompt = site.runs(ann, says("", call("note.write", file="reports/b")), says("Done."))
    assert (deciders(prompt), len(pending(prompt))) == ([], 1)


def test_a_call_that_was_asked_about_before_the_tool_changed_is_not_covered(
    ann: User, site: Site, world: Writing
) -> None:
    """Its question has the schema that the grant was given for, and the tool has another by now."""

    class Longer(Note):
        more: str = ""

    grant = remembered(site, ann, below())
    prompt = site.runs(ann, *notes("reports/b"))
    gate = next(step for step in read_steps(prompt.conversation_id, prompt.pk) if step.payload.get("policy") == "human")
    asked = Asked(gate.payload["payload"], tuple(grant.callers), False, timezone.now(), prompt.conversation_id)
    (write,) = (each for each in world.tools() if each.name == "note.write")
    assert uncovered(grant, write, asked) is None
    assert uncovered(grant, replace(write, input=Longer), asked) == "The tool has changed since it was given."


def test_a_grant_that_cannot_be_read_covers_nothing(
    ann: User, site: Site, world: Writing, caplog: pytest.LogCaptureFixture
) -> None:
    remembered(site, ann, below())
    for broken in ([{"operator": "is"}], [{"field": "path", "operator": "sounds_like", "value": "x"}], "x", [1]):
        Grant.objects.update(conditions=broken)
        assert deciders(site.runs(ann, *notes("reports/b"))) == []
    assert "was not looked at to its end" in caplog.text


def test_what_the_system_starts_needs_a_grant_for_that(ann: User, site: Site, world: Writing) -> None:
    def unattended() -> Prompt:
        site.speaks(*notes("reports/b"))
        prompt = start_prompt(start_conversation(ann), None, "Go.")
        site.works()
        return prompt

    remembered(site, ann, below())
    assert deciders(unattended()) == []
    grant = remembered(site, ann, below("reports", unattended=True), path="reports.txt")
    prompt = unattended()
    assert deciders(prompt) == [grant.actor]
    sound(prompt)


def test_it_goes_with_the_conversation_in_which_it_was_given(ann: User, site: Site, world: Writing) -> None:
    grant = remembered(site, ann, below())
    other = remembered(site, ann, EXACT, path="private/x")
    erase(grant.prompt.conversation, ann)
    assert list(Grant.objects.all()) == [other]


def test_it_goes_with_the_words_of_the_call_with_which_it_was_given(ann: User, site: Site, world: Writing) -> None:
    """Its conditions have them: where the call is redacted, nothing of it is left there, and people are asked again."""
    grant = remembered(site, ann, below("private/hunter2"), path="private/hunter2.txt")
    other = remembered(site, ann, below())
    decided = Row.objects.get(prompt=grant.prompt, path="1/0/human", type="action_result")
    assert "hunter2" in decided.payload
    redact(grant.prompt.conversation, [decided.seq], ann, "A password.")
    assert list(Grant.objects.all()) == [other]
    assert deciders(site.runs(ann, *notes("private/hunter2.txt"))) == []
    sound(grant.prompt)


def test_after_a_restore_none_holds(ann: User, site: Site, world: Writing) -> None:
    """Nobody knows whether it was revoked, or used up, after the backup."""
    grant = remembered(site, ann, below(uses=5))
    make_safe("noon")
    prompt = site.runs(ann, *notes("reports/b"))
    assert (deciders(prompt), len(pending(prompt))) == ([], 1)
    grant.refresh_from_db()
    assert (grant.used, grant.revoked_at is None) == (0, False)


def test_the_check_of_the_ledger_follows_each_decision(ann: User, site: Site, world: Writing) -> None:
    """Whatever is changed of what the grant says, or of the call, it is seen."""
    grant = remembered(site, ann, below(until=timezone.now() + timedelta(hours=1)))
    prompt = site.runs(ann, *notes("reports/b"))
    steps = read_steps(prompt.conversation_id, prompt.pk)
    assert problems_of(steps) == []
    at = next(at for at, step in enumerate(steps) if step.actor == grant.actor)
    said = steps[at].payload

    def wrong(step: Step) -> bool:
        return bool(problems_of([*steps[:at], step, *steps[at + 1 :]]))

    def tampered(**more: Any) -> Step:
        return replace(steps[at], payload=said | {"grant": said["grant"] | more})

    assert wrong(tampered(conditions=[{"field": "path", "operator": "starts_with", "value": "private/"}]))
    assert wrong(tampered(tool="note.read"))
    assert wrong(tampered(schema="0" * 64))
    assert wrong(tampered(callers=["other"]))
    assert wrong(tampered(until="2020-01-01T00:00:00+00:00"))
    assert wrong(replace(steps[at], payload={k: v for k, v in said.items() if k != "grant"}))
    assert wrong(replace(steps[at], payload=said | {"via": "page"}))
    assert wrong(replace(steps[at], actor="user:1"))
    assert not wrong(tampered())


def test_the_check_of_the_ledger_follows_what_was_remembered(ann: User, site: Site, world: Writing) -> None:
    """A grant is given by a person, with an approval, for calls like the one that is approved."""
    prompt = remembered(site, ann, below()).prompt
    steps = read_steps(prompt.conversation_id, prompt.pk)
    assert problems_of(steps) == []
    at = next(at for at, step in enumerate(steps) if "remember" in step.payload)
    gate = steps[: at + 1]

    def wrong(**more: Any) -> list[str]:
        changed = [*gate[:at], replace(gate[at], payload=gate[at].payload | more)]
        return [problem.what for problem in problems_of(changed) if "grant" in problem.what]

    assert wrong() == []
    assert wrong(remember=gate[at].payload["remember"] | {"tool": "note.read"})
    assert wrong(remember=[])
    assert wrong(decision="reject")


@pytest.mark.django_db(transaction=True)
def test_of_fifty_calls_at_once_as_many_run_as_were_granted(
    ann: User, site: Site, world: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifty turns look at the grant before any uses it: twenty run, thirty wait for a person."""
    many, enough = 50, 20
    grant = remembered(site, ann, below(uses=enough))
    Quota.objects.create(user=ann, running_prompts=0)
    site.speaks(*notes("reports/b"))
    prompts = [start_prompt(start_conversation(ann), ann, "Go.") for _ in range(many)]
    meet = threading.Barrier(many)
    looked = SiteGatekeeper._decide

    def together(self: SiteGatekeeper, *args: Any) -> Any:
        verdict = looked(self, *args)
        meet.wait(timeout=60)
        return verdict

    monkeypatch.setattr(SiteGatekeeper, "_decide", together)
    drafts = Drafts(in_this_thread)
    runners = [Runner(taken(prompt, 300.0), "worker:test", in_this_thread, drafts, lambda: True) for prompt in prompts]
    assert at_once(*(partial(async_to_sync(runner)) for runner in runners)) == [None] * many
    grant.refresh_from_db()
    assert (grant.used, world.times["note.write", "reports/b"]) == (enough, enough)
    states = [Prompt.objects.get(pk=prompt.pk).state for prompt in prompts]
    assert (states.count(State.COMPLETED), states.count(State.WAITING)) == (enough, many - enough)
    sound(*prompts)


def test_who_gives_it_is_asked_for_the_permission(ann: User, site: Site, world: Writing) -> None:
    """A person who lost the permission to decide their own calls decides none by a grant either."""
    remembered(site, ann, below())
    ann.groups.clear()
    ann.user_permissions.add(*Permission.objects.filter(codename="decide_approval"))
    assert deciders(site.runs(User.objects.get(pk=ann.pk), *notes("reports/b"))) == []
