"""Deciding in a ledger: how a program that runs policies without a site takes the decisions of people.

On a site, `conversations.approvals.decisions` does it, with permissions, expiry and locks.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from agents.engine.actors import Actor, Kind
from agents.engine.decisions import Ask, Decision, answers_to
from agents.engine.execution.gates import ANOTHER, approved_details, ask_about_edit, shown_digest
from agents.engine.ledger import JSON, Ledger, Step
from agents.engine.paths import is_gate, parent
from agents.engine.runtime.asking import answer_problems
from agents.engine.view import View, until

VIA = "program"
"""How the decision came, as it is recorded."""


def approve(ledger: Ledger, path: str, *, by: str, input: dict[str, JSON] | None = None) -> Ledger:
    """Return the ledger with the approval of the call at `path` by the actor `by`, such as `user:7`.

    With an `input` the call is approved with that instead of its own. It then runs only if what was shown besides its
    input, its facts and its change, holds of the new input too. Where four eyes are needed, another person must then
    approve the edited call. Raises ValueError if nobody is asked about this call, or not whether it may run, and for an
    approval by whoever edited the call or, where four eyes are needed, asked for the turn.
    """
    gate = _asked_about(ledger, path, Decision.APPROVE)
    asked: dict[str, JSON] = gate.payload["payload"]
    said: dict[str, JSON] = {"digest": asked.get("digest", "")}
    if asked.get("who") == ANOTHER and by in (ledger[0].actor, asked.get("edited_by")):
        raise ValueError(f"the call at {path!r} needs four eyes: somebody other than {by!r} must approve it")
    if input is not None and not is_gate(gate.path):
        raise ValueError(f"the question at {gate.path!r} has no input that could be edited")
    if input is not None:
        shown = approved_details(View(ledger), gate.path)
        said = {"digest": shown_digest(asked["tool"], input, asked["schema"], **shown), "input": input, **shown}
    return _decided(ledger, gate, by, Decision.APPROVE, said)


def reject(ledger: Ledger, path: str, *, by: str, reason: str = "") -> Ledger:
    """Return the ledger with the rejection of the call at `path`: it never runs, and its caller reads the reason.

    Raises ValueError as `approve` does.
    """
    gate = _asked_about(ledger, path, Decision.REJECT)
    said = {"digest": gate.payload["payload"].get("digest", "")}
    return _decided(ledger, gate, by, Decision.REJECT, said | ({"reason": reason} if reason else {}))


def answer(ledger: Ledger, path: str, *, by: str, answer: JSON) -> Ledger:
    """Return the ledger with the answer to the question that the call at `path` waits for.

    It is a text, one of the choices of the question, or what fits its schema. If the question is what became of an
    interrupted call, it is `it_ran`, `it_did_not` or `run_again`. Raises ValueError if no such question is open, for an
    answer that is none, and for one by whoever asked for the turn, if somebody else must answer.
    """
    gate = _asked_about(ledger, path, *answers_to(Ask.QUESTION), *answers_to(Ask.INTERRUPTED))
    asked = gate.payload["payload"]
    said: dict[str, JSON] = {"digest": asked["digest"]} if asked.get("digest") else {}
    if asked.get("ask") != Ask.INTERRUPTED:
        if asked.get("who") == ANOTHER and by == ledger[0].actor:
            raise ValueError(f"somebody other than {by!r} must answer the question at {gate.path!r}")
        if wrong := answer_problems(asked, answer):
            listed = "; ".join(f"{field or 'answer'}: {' '.join(why)}" for field, why in wrong.items())
            raise ValueError(f"this is no answer to the question at {gate.path!r}: {listed}")
        return _decided(ledger, gate, by, Decision.ANSWER, said | {"answer": answer})
    if answer not in answers_to(Ask.INTERRUPTED):
        raise ValueError(f"the answer must be one of {', '.join(answers_to(Ask.INTERRUPTED))}, not {answer!r}")
    return _decided(ledger, gate, by, Decision(answer), said)


def expire(ledger: Ledger, path: str) -> Ledger:
    """Return the ledger after the time has run out in which a person could decide about the call at `path`.

    Raises ValueError if nobody is asked about it.
    """
    gate = _asked_about(ledger, path)
    said = {"decision": Decision.EXPIRED.value, "digest": gate.payload["payload"].get("digest", ""), "via": "system"}
    return _decided_by(ledger, [Step("system", "action_result", said, path=gate.path)])


def wake(ledger: Ledger, path: str) -> Ledger:
    """Return the ledger after the time for which the call at `path` sleeps. Raises ValueError if it does not sleep."""
    view = View(ledger)
    call = next((sleep for sleep in view.open_sleeps() if sleep.path == path), None)
    if call is None:
        asleep = ", ".join(sleep.path for sleep in view.open_sleeps()) or "none"
        raise ValueError(f"the call at {path!r} does not sleep; those that do: {asleep}")
    return ledger.extend(wake_steps(view, until(call))).numbered()


def wake_steps(view: View, now: datetime) -> list[Step]:
    """Return what is recorded once a time has come for which calls of a paused turn sleep; nothing if none has.

    The turn goes on, unless people still have to decide something: then with the last of their decisions. Until then
    the last result says when the next of its sleeps is over.
    """
    asleep = view.open_sleeps()
    due = [call for call in asleep if until(call) <= now]
    woken = [Step("system", "action_result", {"output": None}, path=call.path) for call in due]
    if not woken:
        return []
    if not view.open_gates():
        return [*woken, resume_step(view, "time")]
    if asleep[len(due) :]:
        woken[-1] = replace(woken[-1], payload={"output": None, "until": until(asleep[len(due)]).isoformat()})
    return woken


def resume_step(view: View, reason: str = "all_actions_resolved") -> Step:
    """Return the step with which a paused turn goes on: all its gates are decided, or the `time` has come."""
    pauses = view.at("", "pause")
    left: JSON = pauses[-1].payload.get("steps_remaining", 0) if pauses else 0
    return Step("runtime", "resume", {"resumed_reason": reason, "steps_remaining": left})


def _asked_about(ledger: Ledger, path: str, *wanted: Decision) -> Step:
    """Return the open gate, card or question of the call at `path`.

    Raises ValueError if there is none, or if it takes none of the decisions that are `wanted`.
    """
    if not isinstance(ledger, Ledger):
        raise TypeError(f"decisions are taken in a Ledger, not in a {type(ledger).__name__}: Ledger(tuple(steps))")
    gates = View(ledger).open_gates()
    gate = next((each for each in gates if path == each.path or path == _call_of(each)), None)
    if gate is None:
        open_calls = ", ".join(sorted({_call_of(each) for each in gates})) or "none"
        raise ValueError(f"nobody is asked about the call at {path!r}; calls that wait for a person: {open_calls}")
    asked = gate.payload["payload"].get("ask", Ask.QUESTION)
    if wanted and not set(answers_to(asked)) & set(wanted):
        raise ValueError(f"the call at {path!r} waits for another decision: {', '.join(answers_to(asked))}")
    return gate


def _call_of(gate: Step) -> str:
    """Return the path of the call that waits at a gate: of a policy's own question, its own path."""
    return parent(gate.path) if is_gate(gate.path) else gate.path


def _decided(ledger: Ledger, gate: Step, by: str, decision: Decision, said: dict[str, JSON]) -> Ledger:
    person = Actor.parse(str(by))
    if person.kind != Kind.USER or not person.id:
        raise ValueError(f"decisions are a person's: `by` must name one, such as 'user:7', not {by!r}")
    steps = [Step(by, "action_result", {"decision": decision.value, "via": VIA, **said}, path=gate.path)]
    asked = gate.payload["payload"]
    if "input" in said and asked.get("who") == ANOTHER:
        steps = ask_about_edit(View(ledger), gate, steps[0], asked["expires_at"])
    return _decided_by(ledger, steps)


def _decided_by(ledger: Ledger, steps: list[Step]) -> Ledger:
    """Return the ledger with the steps of a decision. If it was the last one that is waited for, the turn goes on."""
    after = ledger.extend(steps)
    view = View(after)
    return (after.append(resume_step(view)) if view.paused() and not view.open_gates() else after).numbered()
