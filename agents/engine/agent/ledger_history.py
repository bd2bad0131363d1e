"""A ledger as the history of a model: what policies hand to the model, often typed by hand (S116)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from agents.engine.actors import Actor, Kind
from agents.engine.agent.projection import NEXT, NOBODY_SPOKE, answer_text, render
from agents.engine.interfaces.messages import AssistantMessage, CallRequest, Message, ResultMessage, UserMessage
from agents.engine.ledger import Step
from agents.engine.paths import parent
from agents.engine.runtime.answers import MODELS
from agents.engine.tools.tool import wire_name
from agents.engine.view import asked_for


@dataclass
class _Answer:
    """One answer of the model: its texts, and its calls by their places in the ledger."""

    texts: list[str] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)


def ledger_messages(ledger: Iterable[Step], *, needs_user: bool = False) -> list[Message]:
    """Return a ledger as a model's history: texts, and calls paired with their results.

    Calls without a result are left out, because model APIs reject them; so are results without a call. If the model
    spoke last, it is asked to go on. For a server that `needs_user`, a message says that nobody said anything if the
    model spoke first, or nobody did.
    Raises TypeError for a text without `text`, and for a call without `policy` and `payload`.
    """
    steps = list(ledger)
    results = _results(steps)
    messages: list[Message] = []
    answers: list[_Answer] = []
    going_on: dict[str, _Answer] = {}  # by path

    def answer_at(path: str) -> _Answer:
        if path not in going_on:
            going_on[path] = _Answer()
            answers.append(going_on[path])
        return going_on[path]

    def close() -> None:
        for answer in answers:
            asked = [(f"c_{n}", wire_name(steps[n].payload["policy"]), n) for n in answer.calls]
            requests = tuple(CallRequest(id, name, steps[n].payload["payload"]) for id, name, n in asked)
            messages.append(AssistantMessage("\n\n".join(answer.texts), requests))
            messages.extend(ResultMessage(id, name, _told(results[n])) for id, name, n in asked)
        answers.clear()
        going_on.clear()

    for n, step in enumerate(steps):
        if step.type == "text" and step.actor not in MODELS:
            close()
            messages.append(UserMessage(_words(step)))
        elif step.type == "text":
            answer_at(step.path).texts.append(answer_text(_words(step), step.payload.get("partial") is True))
        elif n in results:
            answer_at(parent(step.path)).calls.append(n)
        elif step.type == "action_result":  # what is said after it, at the same path, is another answer
            going_on.pop(step.path, None)
            going_on.pop(parent(step.path), None)
    close()
    if needs_user and not (messages and isinstance(messages[0], UserMessage)):
        messages.insert(0, UserMessage(NOBODY_SPOKE))
    if messages and isinstance(messages[-1], AssistantMessage):
        messages.append(UserMessage(NEXT))
    return messages


def _results(steps: list[Step]) -> dict[int, Step]:
    """Return the result of each call that an answer asked for, by the call's place among the steps.

    A result belongs to the call at its path. Steps typed by hand have none: of these, it belongs to the first call of
    the policy that is its actor, or else to the first one.
    """
    waiting: dict[str, list[int]] = defaultdict(list)
    results: dict[int, Step] = {}
    for n, step in enumerate(steps):
        at = waiting[step.path]
        if step.type == "action_call":
            if step.path or not _is_told(step):
                at.clear()  # a later run's call at this path: the earlier one got no result
            at.append(n)
        elif step.type == "action_result" and at:
            named = [call for call in at if steps[call].payload.get("policy") == step.actor]
            first = (named or [call for call in at if _is_told(steps[call])] or at)[0]
            at.remove(first)
            if _is_told(steps[first]):
                results[first] = step
    return results


def _is_told(call: Step) -> bool:
    """Whether a model asked for this call. A run begins with a person's, and policies make calls of their own."""
    if not asked_for(call) or Actor.parse(call.actor).kind == Kind.USER:
        return False
    if not isinstance(call.payload.get("policy"), str) or not isinstance(call.payload.get("payload"), dict):
        raise TypeError("a call needs a `policy`, a name, and a `payload`, a dict: action_call(actor, name, {...})")
    return True


def _words(step: Step) -> str:
    words = step.payload.get("text")
    if not isinstance(words, str):
        raise TypeError(f"a text by {step.actor!r} has no `text`: text(actor, 'Hello.')")
    return words


def _told(result: Step) -> str:
    if result.failed:
        return f"Error ({result.payload['code']}): {result.payload['message']}"
    return render(result.value)
