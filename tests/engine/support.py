"""Helpers of the engine's tests: a scripted model, people who decide, and a site around both."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from agents.engine.agent.projection import TURN_ENDED
from agents.engine.errors import ProviderError
from agents.engine.execution.gates import ShownCall, describe_call
from agents.engine.interfaces.journal import Journal
from agents.engine.interfaces.messages import (
    AssistantMessage,
    CallRequest,
    Message,
    ResultMessage,
    SiteMessage,
    UserMessage,
)
from agents.engine.interfaces.provider import Answer, Request, TextDelta, ToolRequest
from agents.engine.interfaces.services import PastTurn, PlainServices
from agents.engine.ledger import EMPTY, JSON, Ledger, Step
from agents.engine.outputs.kinds import ToolOutput
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.runtime.run import Run
from agents.engine.schema import parse
from agents.engine.tools.tool import Tool, ToolCall, wire_name
from agents.engine.view import View
from tests.engine.journals import NOON, Crash, CrashingJournal, CrashPoint, numbered

# The model


def call(name: str, call_id: str = "", raw: str | None = None, /, **arguments: JSON) -> ToolRequest:
    """A call as a model asks for it."""
    return ToolRequest(wire_name(name), arguments, call_id, raw)


def says(text: str, *calls: ToolRequest) -> Answer:
    return Answer(text, calls, {"input_tokens": 10, "output_tokens": 5}, "test-1", "tool_calls" if calls else "stop")


def last(name: str, /, **arguments: JSON) -> ToolRequest:
    """A call that the model marks as the last of the turn, if it succeeds."""
    return ToolRequest(wire_name(name), arguments, terminate=True)


def garbled(raw: str, why: str = "The tool is missing.") -> Answer:
    """An answer that cannot be read."""
    return replace(says(raw), unreadable=why)


Script = Callable[[Request], Answer | ProviderError]


@dataclass
class ScriptedProvider:
    """A scripted model: it answers by the number of its answers in the history, or by a function."""

    script: Sequence[Answer | list[Answer | ProviderError]] | Script
    asked: list[Request] = field(default_factory=list)
    needs_user: bool = False

    @property
    def encoding(self) -> str:
        return f"scripted {self.needs_user}"

    def encode(self, messages: Sequence[Message]) -> bytes:
        return ",".join(json.dumps([type(m).__name__, asdict(m)]) for m in messages).encode()

    async def aclose(self) -> None:
        """Nothing is open."""

    async def ask(self, request: Request) -> AsyncGenerator[TextDelta | Answer, None]:
        self.asked.append(replace(request, history=tuple(request.history)))  # the engine goes on appending to its list
        answer = self._answer(request)
        if isinstance(answer, ProviderError):
            raise answer
        for word in answer.text.split() if not answer.unreadable else ():
            yield TextDelta(word)
        yield answer

    def _answer(self, request: Request) -> Answer | ProviderError:
        if callable(self.script):
            return self.script(request)
        answer = self.script[answers_in(request)]
        if isinstance(answer, list):
            return answer.pop(0) if len(answer) > 1 else answer[0]
        return answer

    def asked_for_round(self, number: int) -> int:
        """How often the model was asked for this round."""
        return sum(1 for request in self.asked if answers_in(request) == number - 1)


def seen(request: Request) -> list[Message]:
    """The messages of a request."""
    kinds: dict[str, type[Message]] = {
        kind.__name__: kind for kind in (UserMessage, SiteMessage, AssistantMessage, ResultMessage)
    }
    messages: list[Message] = []
    for name, fields in json.loads(b"[" + b",".join(chunk for chunk in request.history if chunk) + b"]"):
        if name == "AssistantMessage":
            fields |= {"calls": tuple(CallRequest(**c) for c in fields["calls"]), "items": tuple(fields["items"])}
        elif name != "SiteMessage":
            fields |= {"notes": tuple(fields["notes"])}
        messages.append(kinds[name](**fields))
    return messages


def answers_in(request: Request) -> int:
    return sum(1 for m in seen(request) if isinstance(m, AssistantMessage) and m.text != TURN_ENDED)


def results_in(request: Request) -> list[str]:
    """What the model reads of its calls' results."""
    return ["\n\n".join(m.texts) for m in seen(request) if isinstance(m, ResultMessage)]


# The people


def decision(
    ledger: Ledger, path: str, decided: str = "approve", by: str = "user:7", resume: bool = True, **said: JSON
) -> list[Step]:
    """The steps of a person's decision at the gate at `path`, and the resume if it was the last gate."""
    view = View(ledger)
    asked = view.call(path)
    assert asked, f"nobody is asked at {path}: {[g.path for g in view.open_gates()]}"
    payload: dict[str, JSON] = {"decision": decided, "via": "page", "digest": asked.payload["payload"].get("digest")}
    steps = [Step(by, "action_result", payload | said, path=path)]
    if resume and view.paused() and [gate.path for gate in view.open_gates()] == [path]:
        steps.append(Step("runtime", "resume", {"resumed_reason": "all_actions_resolved"}))
    return steps


def decide(ledger: Ledger, path: str, decided: str = "approve", **said: Any) -> Ledger:
    """The ledger after a person decided the gate at `path`."""
    return ledger.extend(numbered(ledger, decision(ledger, path, decided, **said)))


def digest_of(tool: Tool, payload: dict[str, JSON], services: PlainServices | None = None) -> str:
    """The digest of this call, as it is shown now."""
    return shown_of(tool, payload, services).digest


def shown_of(tool: Tool, payload: dict[str, JSON], services: PlainServices | None = None) -> ShownCall:
    """What a person would be shown of this call now."""
    looked_at = ToolCall(tool.name, parse(tool.input, payload), 1, services or Site(), "1/0")
    return describe_call(tool, payload, looked_at)


def open_gates(ledger: Ledger) -> list[str]:
    return [gate.path for gate in reversed(View(ledger).open_gates())]


def end_of(ledger: Ledger) -> dict[str, JSON] | None:
    """The payload of the turn's end; None while it has none."""
    result = View(ledger).result("")
    return result.payload if result else None


def lines(steps: Iterable[Step]) -> list[str]:
    """Steps as `path type`, for whole ledgers in a test."""
    return [f"{step.path or '.'} {step.type}" for step in steps]


# The site


@dataclass
class Site(PlainServices):
    """Services whose clock stands still."""

    user: int = 1
    prompt: int = 1
    unattended: bool = False
    spent: float = 0.0
    quota: str | None = None
    files: list[str] = field(default_factory=list)
    drafts: list[tuple[str, str]] = field(default_factory=list)
    past: list[PastTurn] = field(default_factory=list)

    def now(self) -> datetime:
        return NOON

    async def save_file(self, name: str, content: bytes, media_type: str, summary: str) -> int:
        self.files.append(name)
        return len(self.files)

    def draft(self, path: str, text: str, attempt: int = 1) -> None:
        self.drafts.append((path, text))

    def running_seconds(self) -> float:
        return self.spent

    async def over_quota(self) -> str | None:
        return self.quota

    async def history(self, most: int | None = None, skip: int = 0, encoding: str = "") -> Sequence[PastTurn]:
        older = self.past[: len(self.past) - skip]
        return older if most is None else older[max(0, len(older) - most) :]

    async def tools_used(self) -> set[str]:
        return {entry.tool for turn in self.past for entry in turn.outputs if isinstance(entry, ToolOutput)}


async def carry_on(
    registry: PolicyRegistry,
    ledger: Ledger = EMPTY,
    *,
    policy: str = "agent",
    payload: dict[str, Any] | None = None,
    journal: Journal | None = None,
    start: bool = False,
    actions: Iterable[str] = (),
    **options: Any,
) -> Ledger:
    """Run a turn from its ledger until it ends or waits; the ledger after it."""
    journal = journal or CrashingJournal(ledger)
    services = options.pop("services", None) or Site()
    said = {"text": "go"} if payload is None else payload
    await Run(registry, journal, services, steps=ledger, **options).run_turn(policy, said, start=start, actions=actions)
    return journal.ledger  # type: ignore[attr-defined,no-any-return]


async def play(
    registry: PolicyRegistry, decide_gate: Callable[[Ledger, str], Ledger], crash: CrashPoint | None = None, **o: Any
) -> Ledger:
    """A turn from its start to its end: run, decide what is asked, run again; after a crash from what was recorded."""
    ledger = EMPTY
    while end_of(ledger) is None or o.get("journal"):
        journal = CrashingJournal(ledger, crash)
        try:
            await carry_on(registry, ledger, journal=journal, **o)
        except Crash:
            crash = None
        ledger = journal.ledger
        if View(ledger).paused() and not journal.dead:
            for path in open_gates(ledger):
                ledger = decide_gate(ledger, path)
    return ledger
