"""Real turns in the database: the engine with a scripted model, run by the worker's runner."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.fields.files import FieldFile

from agents.engine.interfaces.journal import Record
from agents.engine.interfaces.provider import Answer, ToolRequest
from agents.engine.ledger import JSON, Step
from agents.engine.outputs.timeline import Outputs
from conversations.approvals.decisions import decide
from conversations.erasure.conversations import erase
from conversations.ledger.claims import Claim, claim, claimable
from conversations.ledger.place import LedgerPlace
from conversations.ledger.reading import read_steps
from conversations.models import Conversation, Erasure, Output, Prompt
from conversations.prompts.start import start_conversation, start_prompt
from conversations.worker.drafts import Drafts
from conversations.worker.runner import Runner
from tests.engine.cast import World, site
from tests.engine.support import call, says

T = TypeVar("T")
LEASE = 30.0
TWO_GATES = (says("Two things.", call("shell.run", command="a"), call("shell.run", command="b")), says("Done."))
"""A model that asks for two commands at once, and ends the turn whatever their results."""
ONE_GATE = (says("One thing.", call("shell.run", command="a")), says("Done."))
MIXED = (
    says(
        "Many things, \u00e9.",
        call("fx.read", a=1),
        call("shell.run", command="rm a"),
        call("report.write", name="q"),
        call("shell.run", command="rm \x00 b"),
        call("shell.run", cmd=1),
        ToolRequest("no.such\x00" + "x" * 200, {"text": "\x00\ud800", "number": 1e16}),
        call("fx.read", a=2),
    ),
    says("Done."),
)


class Site:
    """A site with a scripted model, and tools on a world that counts their effects."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world, self.monkeypatch = World(), monkeypatch

    def speaks(self, *script: Answer) -> None:
        """Let the model say this, one answer after the other."""
        registry, _ = site(list(script), self.world.tools())
        self.monkeypatch.setattr("agents.registry.policies", lambda: registry)

    def starts(self, owner: User, *script: Answer, conversation: Conversation | None = None) -> Prompt:
        """Start a turn; nothing runs yet."""
        self.speaks(*script)
        return start_prompt(conversation or start_conversation(owner), owner, "Go.")

    def works(self) -> None:
        """Run everything that can run, as a worker."""
        while found := claimable(10):
            for prompt in found:
                held = claim(prompt, "worker:test", LEASE)
                assert held
                async_to_sync(Runner(held, "worker:test", in_this_thread, Drafts(in_this_thread), lambda: True))()

    def runs(self, owner: User, *script: Answer, conversation: Conversation | None = None) -> Prompt:
        """Start a turn, and run it to its end or until somebody must decide."""
        prompt = self.starts(owner, *script, conversation=conversation)
        self.works()
        prompt.refresh_from_db()
        return prompt

    def ended(self, owner: User, *script: Answer, conversation: Conversation | None = None) -> Prompt:
        """Run a turn to its end, with all gates approved by its owner."""
        prompt = self.runs(owner, *script, conversation=conversation)
        while self.approves(prompt, owner):
            self.works()
        prompt.refresh_from_db()
        return prompt

    def approves(self, prompt: Prompt, by: User) -> int:
        """Approve all pending gates; return how many."""
        gates = pending(prompt)
        for gate in gates:
            decide(gate.pk, by, "approve", digest=gate.digest, via="page")
        return len(gates)

    async def aside(self, function: Callable[..., Any], *args: Any) -> None:
        """Run a function while a tool runs, as people would."""
        await in_this_thread(function, *args)


async def in_this_thread(function: Callable[..., T], *args: Any) -> T:
    """A runner's `write` that uses the test's own connection."""
    return await sync_to_async(function)(*args)


def pending(prompt: Prompt) -> list[Output]:
    return list(Output.objects.pending().filter(prompt=prompt).order_by("position"))


def place(prompt: Prompt) -> LedgerPlace:
    """The ledger position of a writer that has seen everything."""
    conversation = Conversation.objects.get(pk=prompt.conversation_id)
    return LedgerPlace(conversation.pk, prompt.pk, conversation.seq, conversation.head)


def record(prompt: Prompt, at: LedgerPlace, *steps: Step) -> Record:
    """Make a record of these steps, numbered from the writer's position, with the outputs they change."""
    time = datetime.now(UTC).isoformat()
    placed = [Step(s.actor, s.type, s.payload, s.path, at.seq + n, time) for n, s in enumerate(steps, 1)]
    outputs = Outputs(read_steps(prompt.conversation_id, prompt.pk))
    changed = {output.position: output for step in placed if (output := outputs.add(step))}
    return Record(tuple(placed), tuple(changed.values()))


def said(text: str = "Hello.", **more: JSON) -> Step:
    return Step("model", "text", {"text": text, **more})


def taken(prompt: Prompt, lease: float = LEASE) -> Claim:
    """Claim this prompt as a worker."""
    held = claim(prompt.pk, "worker:test", lease)
    assert held
    return held


def at_once(*work: Callable[[], T]) -> list[T | Exception]:
    """Run these functions in threads at the same moment, each on its own connection; return their results or errors."""
    start = threading.Barrier(len(work))

    def run(one: Callable[[], T]) -> T | Exception:
        try:
            connection.ensure_connection()
            start.wait(timeout=30)
            return one()
        except Exception as error:  # noqa: BLE001 - the test checks whatever is raised
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(work)) as threads:
        return list(threads.map(run, work))


def meddle(sql: str, values: Sequence[Any] = ()) -> int:
    """Change the database by hand, with SQL; return the number of rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return int(cursor.rowcount)


def lies_there(file: FieldFile) -> bool:
    """Whether the content of a file is in the storage."""
    return bool(file.name) and file.storage.exists(str(file.name))


def beaten_to_it(conversation: Conversation, by: User, reason: str = "") -> Erasure:
    """`erase`, by the second of two at the same moment: both found the conversation, and the other erases it first."""
    erase(Conversation.objects.get(pk=conversation.pk), by, reason)
    return erase(conversation, by, reason)
