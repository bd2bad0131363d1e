"""Turns of policies that apps register: started by name, recorded with what the site says, ended like any other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents import agent, policy
from agents.engine import Action, Context, Step, action_result
from agents.engine.errors import RegistryError
from agents.engine.interfaces.messages import AssistantMessage, UserMessage
from agents.engine.ledger import JSON
from agents.engine.runtime.policy import Registered
from agents.engine.secrets import keep_secret
from conversations.approvals.decisions import decide
from conversations.erasure.steps import redact
from conversations.models import Conversation, Output, Prompt
from conversations.models import Step as StepRow
from conversations.prompts import startable
from conversations.prompts.start import (
    BadInput,
    TurnInProgress,
    cancel_prompt,
    continue_prompt,
    repeat_prompt,
    start_prompt,
)
from conversations.prompts.startable import Checked, InvalidInput, NotAllowed, UnknownPolicy
from conversations.push.event_reader import EventReader
from conversations.verification.stored import verify
from tests.conversations.recorded import Site, pending
from tests.conversations.travel import ROME, installed, owner_of, started
from tests.engine.support import call, says, seen

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(db: None) -> User:
    """A user who may start policies."""
    return owner_of()


def root_of(prompt: Prompt) -> StepRow:
    return StepRow.objects.get(prompt=prompt, path="", type="action_call")


def problems(prompt: Prompt) -> list[str]:
    return [str(problem) for problem in verify(prompt.conversation_id).problems]


def result_of(prompt: Prompt) -> Any:
    return Output.objects.get(prompt=prompt, type="result").entry().model_dump()["output"]


def test_a_program_of_an_app_runs_waits_and_ends(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """S102, S103: its calls are gated as a model's, and its value is what people see at the end."""
    installed(site, monkeypatch, says("An old city."))
    prompt = started(ann)
    assert (prompt.policy, prompt.input, prompt.conversation.title) == ("travel.plan", "Plan a trip", "")
    site.works()
    (gate,) = pending(prompt)
    assert site.world.done == [("fx.read", 3)]
    decide(gate.pk, ann, "approve", digest=gate.digest, via="page")
    site.works()
    prompt.refresh_from_db()
    assert (prompt.state, prompt.stop_reason) == ("completed", "done")
    assert result_of(prompt) == {"booked": True, "read": "read 3", "told": "An old city."}
    assert site.world.done == [("fx.read", 3), ("shell.run", "book Rome")]
    assert Conversation.objects.get(pk=prompt.conversation_id).title == "Plan a trip"
    assert problems(prompt) == []


def test_its_root_has_its_own_payload_and_beside_it_what_the_site_says(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(site, monkeypatch)
    said = root_of(started(ann, tier="high")).content
    assert said == {
        "policy": "travel.plan",
        "payload": ROME,
        "site": {"tier": "high", "summary": "Plan a trip"},
        "origin": "user",
    }
    text = root_of(started(ann, "travel.guide", {"text": "Where to?"})).content
    assert text["payload"] == {"text": "Where to?"}
    assert text["site"] == {"tier": "normal"}


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({"text": "Where to?"}, "Where to?"),
        ({"text": "  "}, "Ask the guide"),
        ({"text": 3}, "Ask the guide"),
        ({}, None),
    ],
)
def test_what_was_asked_is_its_text_or_else_its_title(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch, payload: dict[str, JSON], words: str | None
) -> None:
    """On the row, in the title, and in the first event alike; and the check agrees."""
    installed(site, monkeypatch)
    prompt = started(ann, "travel.guide", payload)
    words = words or "Ask the guide"
    assert (prompt.input, Conversation.objects.get(pk=prompt.conversation_id).title) == (words, words)
    (created,) = EventReader(prompt.conversation_id, 0).read()
    assert f'"input":"{words}"' in created.text
    assert problems(prompt) == []


def test_an_agent_of_an_app_has_its_own_prompt_and_the_sites_tier(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = installed(site, monkeypatch, says("To Rome."))
    prompt = started(ann, "travel.guide", {"text": "Where to?"}, tier="high")
    site.works()
    prompt.refresh_from_db()
    assert (prompt.state, prompt.stop_reason) == ("completed", "text")
    (asked,) = provider.asked
    assert (asked.system, asked.tier) == ("You are a guide.", "high")
    assert seen(asked) == [UserMessage("Where to?")]
    assert problems(prompt) == []


def test_the_next_turn_is_told_what_a_program_did(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    @policy("travel.short", title="Something short")
    async def short(action: Action, ctx: Context) -> list[Step]:
        return [action_result("travel.short", {"days": 2})]

    provider = installed(site, monkeypatch, says("(unused)"), says("Two days."), policies=(short,))
    prompt = started(ann, "travel.short", {})
    site.works()
    start_prompt(prompt.conversation, ann, "How long?")
    site.works()
    told = seen(provider.asked[0])
    assert told == [UserMessage("Something short"), AssistantMessage('{"days": 2}'), UserMessage("How long?")]


@pytest.mark.parametrize("name", ["no.such", "agent", "model", "fx.read", "human", "", "workflow:no"])
def test_only_policies_of_apps_are_started(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Neither a tool nor what the engine has is one: a tool has a gate of its own, and the agent has messages."""
    installed(site, monkeypatch)
    with pytest.raises(UnknownPolicy):
        startable.find_for(ann, name)
    with pytest.raises(UnknownPolicy):
        startable.find(name)
    assert not Prompt.objects.exists()


def test_who_may_start_none_is_not_told_which_there_are(bob: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(site, monkeypatch)
    for name in ("travel.plan", "no.such"):
        with pytest.raises(NotAllowed):
            startable.find_for(bob, name)


@pytest.mark.parametrize(
    ("payload", "places"),
    [
        ({"city": "Rome"}, {"days"}),
        ({"city": "Rome", "days": 99, "town": 1}, {"days"}),
        ({"city": "Rome", "days": 3, "notes": ["a", 2]}, {"notes.1"}),
        ([1], {""}),
        ({"city": "Rome", "days": float("nan")}, {""}),
        ({"city": "R" * 300_000, "days": 3}, {""}),
    ],
)
def test_a_payload_that_it_does_not_accept_starts_nothing(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch, payload: Any, places: set[str]
) -> None:
    installed(site, monkeypatch)
    with pytest.raises(InvalidInput) as refused:
        started(ann, payload=payload)
    assert places <= set(refused.value.fields)
    assert all(re.fullmatch(r"[A-Z].*[^.]\.", why) for whys in refused.value.fields.values() for why in whys)
    assert not Prompt.objects.exists()


def test_a_payload_that_is_too_long_is_not_judged(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its length is told, not all that is wrong with it."""
    installed(site, monkeypatch)
    with pytest.raises(InvalidInput) as refused:
        started(ann, payload={"notes": [1] * 200_000})
    assert refused.value.fields == {"": ["At most 200,000 characters of JSON are accepted; this has 400,011."]}


def test_the_same_key_starts_it_once_though_it_would_not_be_accepted_again(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(site, monkeypatch)
    conversation = started(ann).conversation
    cancel_prompt(conversation.prompts.get().pk, ann)
    asked: dict[str, Any] = {"policy": "travel.plan", "payload": ROME, "key": "k"}
    first = start_prompt(conversation, ann, **asked)
    installed(site, monkeypatch, policies=())
    assert start_prompt(conversation, ann, **asked) == first


def test_it_takes_the_slot_like_a_message(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(site, monkeypatch)
    prompt = started(ann)
    with pytest.raises(TurnInProgress):
        start_prompt(prompt.conversation, ann, policy="travel.plan", payload=ROME)
    queued = start_prompt(prompt.conversation, None, policy="travel.plan", payload=ROME)
    assert root_of(queued).actor == "system"
    assert problems(queued) == []


def test_the_sites_secrets_are_not_recorded(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(site, monkeypatch)
    keep_secret(["sk-0123456789abcdef"])
    try:
        prompt = started(ann, "travel.guide", {"text": "Use sk-0123456789abcdef."})
    finally:
        keep_secret([])
    assert prompt.input == "Use [secret]."
    assert root_of(prompt).content["payload"] == {"text": "Use [secret]."}
    assert problems(prompt) == []


def test_a_program_is_repeated_with_the_same_payload(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(site, monkeypatch, says("An old city."))
    old = started(ann, tier="high")
    cancel_prompt(old.pk, ann)
    again = repeat_prompt(old.pk, ann)
    said = root_of(again).content
    assert (said["payload"], said["site"]) == (ROME, {"tier": "high", "summary": "Plan a trip", "repeats": old.pk})
    assert (again.input, again.policy, again.repeats_id) == ("Plan a trip", "travel.plan", old.pk)
    assert problems(again) == []


def test_a_program_cannot_be_continued_but_an_agent_can(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program would begin anew, and do again what it did. An agent reads in its history what was done."""
    short = policy("travel.brief", title="Brief")(agent(prompt="Be brief.", rounds=1))
    provider = installed(
        site, monkeypatch, says("I look.", call("fx.read", a=1)), *[says("Seen.")] * 2, policies=(short,)
    )
    old = started(ann, "travel.brief", {"text": "Look."})
    site.works()
    old.refresh_from_db()
    new = continue_prompt(old.pk, ann)
    assert (new.input, new.continues_id) == (None, old.pk)
    assert root_of(new).content["site"] == {"tier": "normal", "continues": old.pk}
    site.works()
    new.refresh_from_db()
    assert new.state == "completed"
    asked = provider.asked[-1]
    assert [m.text for m in seen(asked) if isinstance(m, UserMessage)] == ["Look."]
    assert "continue where it stopped" in asked.line
    assert problems(new) == []
    installed(site, monkeypatch)
    ran = started(ann)
    site.works()
    cancel_prompt(ran.pk, ann)
    with pytest.raises(BadInput, match="ran a program"):
        continue_prompt(ran.pk, ann)


def test_a_turn_of_a_policy_follows_only_for_those_who_may_start_it(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(site, monkeypatch)
    old = started(ann)
    cancel_prompt(old.pk, ann)
    with monkeypatch.context() as gone:
        installed(site, gone, policies=())
        with pytest.raises(UnknownPolicy):
            repeat_prompt(old.pk, ann)
    ann.user_permissions.clear()
    with pytest.raises(NotAllowed):
        repeat_prompt(old.pk, User.objects.get(pk=ann.pk))


def test_a_redaction_takes_the_payload_the_words_and_what_repeats_them(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(site, monkeypatch, says("An old city."))
    old = started(ann, "travel.guide", {"text": "Where to with Zoe?", "with": {"Zoe": 3}})
    cancel_prompt(old.pk, ann)
    again = repeat_prompt(old.pk, ann)
    cancel_prompt(again.pk, ann)
    redact(old.conversation, [root_of(old).seq], ann, "Private.")
    for prompt in (old, again):
        prompt.refresh_from_db()
        said = root_of(prompt).content
        assert (prompt.input, said["redacted"], said["site"]["tier"]) == ("[redacted]", True, "normal")
        assert "Zoe" not in root_of(prompt).payload
        with pytest.raises(BadInput, match="redacted"):
            repeat_prompt(prompt.pk, ann)
    assert Conversation.objects.get(pk=old.conversation_id).title == "[redacted]"
    assert problems(old) == []


def test_a_redaction_takes_the_payload_from_a_turn_that_continues_it_too(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(site, monkeypatch, says("I look.", call("shell.run", command="ls")))
    old = started(ann, "travel.guide", {"text": "Where to with Zoe?"})
    site.works()
    cancel_prompt(old.pk, ann)
    new = continue_prompt(old.pk, ann)
    cancel_prompt(new.pk, ann)
    redact(old.conversation, [root_of(old).seq], ann, "Private.")
    assert "Zoe" not in root_of(old).payload + root_of(new).payload


def test_a_redacted_result_is_gone_from_the_page_too(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    @policy("travel.short", title="Something short")
    async def short(action: Action, ctx: Context) -> list[Step]:
        return [action_result("travel.short", {"who": "Zoe"})]

    installed(site, monkeypatch, policies=(short,))
    prompt = started(ann, "travel.short", {})
    site.works()
    end = StepRow.objects.get(prompt=prompt, path="", type="action_result")
    redact(prompt.conversation, [end.seq], ann, "Private.")
    assert "Zoe" not in Output.objects.get(prompt=prompt, type="result").data
    assert problems(prompt) == []


@pytest.mark.parametrize(
    ("column", "value"), [("input", "Other"), ("tier", "high"), ("policy", "agent"), ("origin", "api")]
)
def test_a_row_that_says_something_else_than_the_call_is_found(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch, column: str, value: str
) -> None:
    installed(site, monkeypatch)
    prompt = started(ann)
    Prompt.objects.filter(pk=prompt.pk).update(**{column: value})
    assert any(column in problem for problem in problems(prompt))


def test_an_offered_policy_is_called_by_a_model_and_its_own_calls_wait(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entry holds what it calls. What is not offered is no tool of a model, whatever it asks for."""
    asked = says("I count.", call("travel.words", text="one two"), call("travel.plan", city="Rome", days=1))
    provider = installed(site, monkeypatch, asked, says("Two."))
    prompt = start_prompt(Conversation(owner=ann), ann, "How many words?")
    site.works()
    assert [d.name for d in provider.asked[0].tools if d.name.startswith("travel")] == ["travel_words"]
    (gate,) = pending(prompt)
    assert gate.path == "1/0/1"
    site.approves(prompt, ann)
    site.works()
    prompt.refresh_from_db()
    assert prompt.state == "completed"
    counted, refused = (Output.objects.get(prompt=prompt, path=path).entry() for path in ("1/0", "1/1"))
    assert counted.model_dump()["result"] == {"type": "success", "output": 2}
    assert refused.model_dump()["result"]["error"]["code"] == "unknown_tool"
    assert Output.objects.get(prompt=prompt, path="1/0/1").entry().parent == "1/0"
    assert problems(prompt) == []


@dataclass(frozen=True)
class Project:
    """Something that an app registers: who may start it, and what of its input is recorded, is its own word."""

    kind: str = "workflow"
    name: str = "project.make"
    title: str = "Create a project"
    schedulable: bool = False

    @property
    def schema(self) -> dict[str, JSON]:
        return {"type": "object"}

    def may(self, user: User) -> bool:
        return user.get_username() == "bob"

    def checked(self, input: dict[str, JSON], user: User) -> Checked:
        if "name" not in input:
            raise InvalidInput({"name": ["Name it."]})
        return Checked({"name": input["name"], "by": user.get_username()}, {"password": str(input.get("password", ""))})

    def placed(self, payload: dict[str, JSON], paths: Mapping[str, str]) -> dict[str, JSON]:
        return payload

    def summary(self, payload: dict[str, JSON]) -> str:
        return f"Create {payload['name']}"

    def given(self, payload: dict[str, JSON]) -> dict[str, JSON]:
        return payload

    page = ""

    def again(self, prompt: int) -> str:
        return ""


async def create(action: Action, ctx: Context) -> list[Step]:
    return [action_result("workflow:project.make", action.payload["name"])]


@pytest.fixture
def _registered() -> Any:
    startable.register(Project(), Registered("workflow:project.make", create))
    yield
    startable.unregister("workflow:project.make")


@pytest.mark.usefixtures("_registered")
def test_what_registers_is_started_only_as_it_says(
    ann: User, bob: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own rule says who may, its own check what is recorded; a secret stands nowhere in the record."""
    installed(site, monkeypatch)
    name = "workflow:project.make"
    assert startable.find_for(bob, name) == Project()
    with pytest.raises(NotAllowed):
        startable.find_for(ann, name)
    with pytest.raises(InvalidInput, match="Name it"):
        started(bob, name, {})
    prompt = started(bob, name, {"name": "Site of hunter2", "password": "hunter2"})
    assert prompt.input == "Create Site of [secret]"
    assert not StepRow.objects.filter(payload__contains="hunter2").exists()
    site.works()
    prompt.refresh_from_db()
    assert (prompt.state, result_of(prompt)) == ("completed", "Site of [secret]")
    assert problems(prompt) == []


@pytest.mark.usefixtures("_registered")
def test_a_name_is_registered_once() -> None:
    with pytest.raises(RegistryError, match=r"workflow:project\.make"):
        startable.register(Project(title="Another"), Registered("workflow:project.make", create))
    for kind in ("", "user", "Work flow"):
        with pytest.raises(RegistryError, match="name nothing"):
            startable.register(Project(kind=kind), Registered(f"{kind}:project.make", create))
