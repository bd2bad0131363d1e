"""The turns that are recorded: each a function that has a site do one, of one kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import Error
from django.test import override_settings

from agents.engine import Action, Context, PolicyRegistry, loop_wrapper
from agents.engine.agent.attempts import OWN_ATTEMPTS
from agents.engine.errors import ProviderError
from agents.engine.interfaces.provider import Answer, ToolRequest
from agents.engine.ledger import Step as Entry
from agents.engine.limits import Limits
from agents.models import SystemPrompt
from conversations.approvals.decisions import decide
from conversations.approvals.expiry import expire_due
from conversations.erasure.steps import redact
from conversations.files.uploads import Upload
from conversations.ledger import group_commit
from conversations.models import Conversation, Origin, Output, Prompt, Step
from conversations.prompts.start import cancel_prompt, continue_prompt, repeat_prompt, start_conversation, start_prompt
from tests.conversations.recorded import LEASE, MIXED, ONE_GATE, TWO_GATES, Site, meddle, pending
from tests.conversations.support import person
from tests.engine.cast import site as registered
from tests.engine.execution.test_changes import Notes
from tests.engine.support import call, says

Turn = Callable[[Site, User], Prompt]
S99 = (
    says("I will look.", call("shell.run", command="ls")),
    says("One more.", call("shell.run", command="date")),
    says("Two files, Friday."),
)
BUSY = ProviderError("Overloaded.", code="server_error", retryable=True, wait_seconds=0)
DONE = (says("Done."),) * 4


def decided(prompt: Prompt, by: User, decision: str, **more: Any) -> None:
    """Each gate that waits, decided the same way."""
    for gate in pending(prompt):
        decide(gate.pk, by, decision, digest=gate.digest, via="page", **more)


def went_on(site: Site, prompt: Prompt) -> Prompt:
    site.works()
    prompt.refresh_from_db()
    return prompt


def lost_after(site: Site, type: str, path: str) -> None:
    """The worker is lost when this step is recorded, and its lease lapses."""

    def lost(point: str, steps: Sequence[Entry] = ()) -> None:
        if point == "after_commit" and any((step.type, step.path) == (type, path) for step in steps):
            raise Error("the database is gone")

    with site.monkeypatch.context() as patch:
        patch.setattr(group_commit, "crashpoint", lost)
        site.works()
    meddle("UPDATE conversations_prompt SET lease_until = lease_until - %s WHERE lease_until > 0", [LEASE + 1])


def interrupted(site: Site, owner: User, answer: str) -> Prompt:
    prompt = site.runs(owner, *ONE_GATE)
    decided(prompt, owner, "approve")
    lost_after(site, "action_start", "1/0")
    went_on(site, prompt)
    if answer:
        decided(prompt, owner, answer)
        went_on(site, prompt)
    return prompt


def s99(site: Site, owner: User) -> Prompt:
    return site.ended(owner, *S99)


def text(site: Site, owner: User) -> Prompt:
    return site.ended(owner, says("Hello, \u00e9\u4e16\U0001f600."))


def mixed(site: Site, owner: User) -> Prompt:
    prompt = site.runs(owner, *MIXED)
    first, second = pending(prompt)
    decide(first.pk, owner, "approve", digest=first.digest, via="api", input={"command": "rm -i a"})
    decide(second.pk, owner, "reject", digest=second.digest, via="admin", reason="Keep b.")
    return went_on(site, prompt)


def edited(site: Site, owner: User) -> Prompt:
    prompt = site.runs(owner, *ONE_GATE)
    decided(prompt, owner, "approve", input={"command": "ls -l"})
    return went_on(site, prompt)


def rejected(site: Site, owner: User) -> Prompt:
    prompt = site.runs(owner, *ONE_GATE)
    decided(prompt, owner, "reject", reason="Not today.")
    return went_on(site, prompt)


def expired(site: Site, owner: User) -> Prompt:
    with override_settings(AGENTSITE_APPROVAL_HOURS=0.0000001):
        prompt = site.runs(owner, *ONE_GATE)
    while Output.objects.pending().exists():
        expire_due()
    return went_on(site, prompt)


def cancelled_waiting(site: Site, owner: User) -> Prompt:
    return cancel_prompt(site.runs(owner, *TWO_GATES).pk, owner, "Never mind.")


def cancelled_queued(site: Site, owner: User) -> Prompt:
    return cancel_prompt(site.starts(owner, *ONE_GATE).pk, owner)


def cancelled_running(site: Site, owner: User) -> Prompt:
    prompt = site.starts(owner, says("x", call("touch", name="a"), call("fx.read", a=1)), says("Never."))
    site.world.at["touch"] = lambda _: site.aside(cancel_prompt, prompt.pk, owner)
    return went_on(site, prompt)


def it_ran(site: Site, owner: User) -> Prompt:
    return interrupted(site, owner, "it_ran")


def it_did_not(site: Site, owner: User) -> Prompt:
    return interrupted(site, owner, "it_did_not")


def run_again(site: Site, owner: User) -> Prompt:
    return interrupted(site, owner, "run_again")


def unattended(site: Site, owner: User) -> Prompt:
    """Nobody is there to answer a card: the model is told that nobody knows."""
    site.starts(owner, says("x", call("pay", amount=1)), *DONE)
    cancel_prompt(Prompt.objects.latest("pk").pk, owner)
    prompt = start_prompt(start_conversation(owner), None, "Nightly.", origin=Origin.TRIGGER)
    lost_after(site, "action_start", "1/0")
    return went_on(site, prompt)


def max_rounds(site: Site, owner: User) -> Prompt:
    with override_settings(AGENTSITE_MAX_ROUNDS=2):
        return site.ended(owner, *(says(f"{n}.", call("fx.read", a=n)) for n in range(3)))


def timeout(site: Site, owner: User) -> Prompt:
    with override_settings(AGENTSITE_TURN_SECONDS=0):
        return site.ended(owner, *ONE_GATE)


def parse_failures(site: Site, owner: User) -> Prompt:
    unread = Answer("{no json", (), {"input_tokens": 1, "output_tokens": 1}, "test-1", unreadable="It is no JSON.")
    return site.ended(owner, *[unread] * 4)


def parse_failure_once(site: Site, owner: User) -> Prompt:
    unread = Answer("{no json", (), {"input_tokens": 1, "output_tokens": 1}, "test-1", unreadable="It is no JSON.")
    return site.ended(owner, unread, says("Done."))


def terminate(site: Site, owner: User) -> Prompt:
    return site.ended(owner, says("x", ToolRequest("fx_read", {"a": 1}, terminate=True)), *DONE)


def model_error(site: Site, owner: User) -> Prompt:
    refused = ProviderError("HTTP 401: a wrong key.", code="refused")
    return site.ended(owner, [refused])  # type: ignore[arg-type]


def retried(site: Site, owner: User) -> Prompt:
    return site.ended(owner, [BUSY, says("At last.")])  # type: ignore[arg-type]


def tool_changed(site: Site, owner: User) -> Prompt:
    """Another version of the site is deployed while an approval waits."""
    prompt = site.runs(owner, *ONE_GATE)
    decided(prompt, owner, "approve")
    others = [replace(tool, facts=lambda call: ["Not sandboxed"]) for tool in site.world.tools()]
    site.monkeypatch.setattr(site.world, "tools", lambda: others)
    site.starts(owner, *ONE_GATE)
    cancel_prompt(Prompt.objects.latest("pk").pk, owner)
    return went_on(site, prompt)


def continued(site: Site, owner: User) -> Prompt:
    with override_settings(AGENTSITE_MAX_ROUNDS=1):
        old = site.ended(owner, says("x", call("fx.read", a=1)), *DONE)
    return went_on(site, continue_prompt(old.pk, owner))


def repeated(site: Site, owner: User) -> Prompt:
    old = cancel_prompt(site.starts(owner, *DONE).pk, owner)
    return went_on(site, repeat_prompt(old.pk, owner))


def redacted(site: Site, owner: User) -> Prompt:
    """A call with its gate, a text, and a message with a file."""
    prompt = site.starts(owner, *ONE_GATE)
    cancel_prompt(prompt.pk, owner)
    given = Upload.of(SimpleUploadedFile("secret.txt", b"secret", "text/plain"))
    prompt = start_prompt(start_conversation(owner), owner, "My secret.", files=[given])
    went_on(site, prompt)
    decided(prompt, owner, "approve", input={"command": "echo secret"})
    went_on(site, prompt)
    for type, path in (("action_call", "1/0"), ("text", "1"), ("action_call", "")):
        redact(prompt.conversation, [Step.objects.get(prompt=prompt, type=type, path=path).seq], owner, "A secret.")
    return prompt


def files_and_widgets(site: Site, owner: User) -> Prompt:
    return site.ended(owner, says("x", call("report.write", name="q"), call("report.write", name="r")), *DONE)


def invalid(site: Site, owner: User) -> Prompt:
    wrong = (call("shell.run", cmd=1), call("no.such"), call("fx.read", "c1", "{broken"))
    return site.ended(owner, says("x", *wrong), *DONE)


def system_prompt(site: Site, owner: User) -> Prompt:
    prompt = SystemPrompt.create(name="Pirate", text="You are a pirate.")
    site.starts(owner, *DONE)
    cancel_prompt(Prompt.objects.latest("pk").pk, owner)
    return went_on(site, start_prompt(start_conversation(owner, system_prompt=prompt), owner, "Who are you?"))


def several_turns(site: Site, owner: User) -> Prompt:
    first = site.ended(owner, *DONE)
    site.ended(owner, *DONE, conversation=first.conversation)
    return site.ended(owner, *DONE, conversation=first.conversation)


def waiting(site: Site, owner: User) -> Prompt:
    """One of two gates is decided."""
    prompt = site.runs(owner, *TWO_GATES)
    gate = pending(prompt)[0]
    decide(gate.pk, owner, "approve", digest=gate.digest, via="page")
    return prompt


def queued(site: Site, owner: User) -> Prompt:
    return site.starts(owner, *DONE)


def approved(site: Site, owner: User) -> Prompt:
    """Approved, and no worker came yet."""
    prompt = site.runs(owner, *ONE_GATE)
    decided(prompt, owner, "approve")
    return prompt


def lost_asking(site: Site, owner: User) -> Prompt:
    """The worker was lost while it asked the model."""
    prompt = site.starts(owner, *ONE_GATE)
    lost_after(site, "action_start", "1")
    return prompt


def lost_reading(site: Site, owner: User) -> Prompt:
    """The worker was lost after the first of two results."""
    prompt = site.starts(owner, says("x", call("touch", name="a"), call("touch", name="b")), *DONE)
    lost_after(site, "action_result", "1/0")
    return prompt


def interrupted_waiting(site: Site, owner: User) -> Prompt:
    """A card asks what became of a call."""
    return interrupted(site, owner, "")


def four_eyes(site: Site, owner: User) -> Prompt:
    """Somebody else decides, in the admin; who asked could not."""
    others = [replace(tool, four_eyes=True) for tool in site.world.tools()]
    site.monkeypatch.setattr(site.world, "tools", lambda: others)
    prompt = site.runs(owner, *ONE_GATE)
    (gate,) = pending(prompt)
    kim = User.objects.filter(username="kim").first() or person("kim", "decide_approval", is_staff=True)
    decide(gate.pk, kim, "approve", digest=gate.digest, via="admin")
    return went_on(site, prompt)


def four_eyes_edited(site: Site, owner: User) -> Prompt:
    """Somebody else edits the call, and a third person approves it like that."""
    others = [replace(tool, four_eyes=True) for tool in site.world.tools()]
    site.monkeypatch.setattr(site.world, "tools", lambda: others)
    for name in ("kim", "lou"):
        User.objects.filter(username=name).first() or person(name, "decide_approval", is_staff=True)
    prompt = site.runs(owner, *ONE_GATE)
    for name, edit in (("kim", {"command": "ls"}), ("lou", None)):
        (gate,) = pending(prompt)
        decide(gate.pk, User.objects.get(username=name), "approve", digest=gate.digest, via="admin", input=edit)
    return went_on(site, prompt)


def fell_back(site: Site, owner: User) -> Prompt:
    """The tier's own model fails until another is asked."""
    with override_settings(AGENTSITE_MODEL_FALLBACK="stand-in"):
        return site.ended(owner, [*[BUSY] * OWN_ATTEMPTS, says("I stand in.")])  # type: ignore[arg-type]


def changed_since(site: Site, owner: User) -> Prompt:
    """What a call would change is another text by the time somebody approves."""
    notes = Notes(a="old")
    site.monkeypatch.setattr(site.world, "tools", lambda: [notes.tool()])
    prompt = site.runs(owner, says("x", call("note.set", name="a", text="new")), *DONE)
    notes["a"] = "newer"
    decided(prompt, owner, "approve")
    return went_on(site, prompt)


def changed(site: Site, owner: User) -> Prompt:
    """A change that was shown and made."""
    notes = Notes(a="old")
    site.monkeypatch.setattr(site.world, "tools", lambda: [notes.tool()])
    return site.ended(owner, says("x", call("note.set", name="a", text="new")), *DONE)


def not_permitted(site: Site, owner: User) -> Prompt:
    """Who approved may not any more when the call would start."""
    prompt = site.runs(owner, *ONE_GATE)
    kim = User.objects.filter(username="kim").first() or person("kim", "decide_approval", is_staff=True)
    (gate,) = pending(prompt)
    decide(gate.pk, kim, "approve", digest=gate.digest, via="admin")
    kim.user_permissions.clear()
    return went_on(site, prompt)


def over_quota(site: Site, owner: User) -> Prompt:
    """The tokens of the day are used up in mid-turn."""
    with override_settings(AGENTSITE_TOKENS_A_DAY=10):
        return site.ended(owner, says("x", call("fx.read", a=1)), *DONE)


def one_id_for_two(site: Site, owner: User) -> Prompt:
    """A model that names two calls the same."""
    return site.ended(owner, says("x", call("fx.read", "same", a=1), call("fx.read", "same", a=2)), *DONE)


def ended_by_limit(site: Site, owner: User) -> Prompt:
    """The turn's time is up while a tool runs; another has read before, and says when."""
    site.world.at["touch"] = lambda tool_call: asyncio.Event().wait()
    with site.monkeypatch.context() as patch:
        patch.setattr("conversations.worker.runner.limits", lambda: Limits(seconds=0.5))
        return site.ended(owner, says("x", call("fx.read", a=1), call("touch", name="t")), *DONE)


def program(site: Site, owner: User) -> Prompt:
    """The root is no agent: its result says no state. It asked the model, and a person in the midst."""

    async def root(action: Action, ctx: Context) -> list[Entry]:
        said = await ctx.call(Action("model", {"system": "Greet."}), [loop_wrapper(2)])
        allowed = await ctx.call(Action("human", {"question": "Go on?"}), key="allowed")
        return [*said, Entry("root", "action_result", {"state": "Washington", "allowed": allowed[-1].value})]

    site.starts(owner)
    registry, _ = registered([says("Hello.")], site.world.tools())
    programs = PolicyRegistry({"agent": root, "model": registry.get("model").policy})  # type: ignore[union-attr]
    site.monkeypatch.setattr("agents.registry.policies", lambda: programs)
    prompt = Prompt.objects.latest("pk")
    went_on(site, prompt)
    decided(prompt, owner, "approve")
    return went_on(site, prompt)


TURNS: tuple[Turn, ...] = (
    s99, text, mixed, edited, rejected, expired, cancelled_waiting, cancelled_queued, cancelled_running, it_ran,
    it_did_not, run_again, unattended, max_rounds, timeout, parse_failures, parse_failure_once, terminate, model_error,
    retried, tool_changed, continued, repeated, redacted, files_and_widgets, invalid, system_prompt, several_turns,
    waiting, queued, approved, lost_asking, lost_reading, interrupted_waiting,
    four_eyes, four_eyes_edited, fell_back, changed_since, changed, not_permitted, over_quota, one_id_for_two,
    ended_by_limit, program,
)  # fmt: skip


def conversation_of(turn: Turn, site: Site, owner: User) -> Conversation:
    """The conversation in which this turn was done."""
    return Conversation.objects.get(pk=turn(site, owner).conversation_id)
