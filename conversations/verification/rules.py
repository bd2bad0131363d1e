"""The rules that the steps of every turn keep, checked in one pass. A prefix of a valid ledger is a valid ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count

from django.core.exceptions import ObjectDoesNotExist
from django.db import OperationalError

from agents.engine.actors import Actor, Kind
from agents.engine.closing import answer_usage, is_turn_result, turn_usage
from agents.engine.decisions import DECISIONS, RUNS, Decision
from agents.engine.execution.gates import ANOTHER, card_digest, card_of, gate_of, shown_digest
from agents.engine.ledger import JSON, Step
from agents.engine.outputs.kinds import Output
from agents.engine.outputs.timeline import Outputs
from agents.engine.paths import card, is_gate, parent
from agents.engine.runtime.asking import answer_problems
from agents.engine.runtime.short import FILE, SHOW, VALUE
from agents.engine.view import View, asked_for, opens_gate, sleeps, until
from conversations.ledger.prompt_row import PromptStanding
from conversations.ledger.redacted import MARK
from conversations.verification.granted import granted

CLOCKS_DIFFER = timedelta(minutes=5)
"""How far the clock of a host may be behind that of the database, which says when a sleep is over."""
ERROR_MOST = 200
"""Characters kept of an error."""


@dataclass(frozen=True)
class LedgerProblem:
    """A broken rule: the step at which it is broken, and what is wrong there."""

    seq: int
    what: str

    def __str__(self) -> str:
        return f"seq {self.seq}: {self.what}"


@contextmanager
def reporting_errors(problems: list[LedgerProblem], seq: int) -> Iterator[None]:
    """Report an exception during a check as a problem: a ledger that was tampered with may contain anything.

    That the database is unavailable, or that a row was deleted meanwhile, is raised: it says nothing about the ledger.
    """
    try:
        yield
    except ObjectDoesNotExist:
        raise
    except Exception as error:
        if isinstance(error, OperationalError) and "decode" not in str(
            error
        ):  # how SQLite reports a text that is not UTF-8
            raise
        problems.append(LedgerProblem(seq, f"cannot be checked: {_one_line(error)}"))


def problems_of(steps: Iterable[Step]) -> list[LedgerProblem]:
    """Return what is wrong with the ledger of one turn, in order of its steps. Never raises.

    Step types that no rule knows are skipped.
    """
    before, problems = View(), []
    for step in steps:
        last = before.steps[-1].id if before.steps else 0
        if step.id <= last:
            problems.append(LedgerProblem(step.id, f"comes after step {last}"))
        try:
            problems += [LedgerProblem(step.id, what) for rule in _RULES for what in rule(step, before)]
        except Exception as error:  # noqa: BLE001 - a payload that was tampered with may hold anything
            problems.append(LedgerProblem(step.id, f"cannot be read: {_one_line(error)}"))
        before.add(step)
    return problems + _folding(before.steps)


def fold_outputs(steps: Iterable[Step]) -> dict[int, Output]:
    """Return the outputs of a turn, by position."""
    outputs = Outputs()
    return {changed.position: changed for step in steps if (changed := outputs.add(step))}


def _one_line(error: Exception) -> str:
    """Return the error on one line, shortened: it may quote anything that was in the ledger."""
    return " ".join(repr(error).split())[:ERROR_MOST]


def _folding(steps: list[Step]) -> list[LedgerProblem]:
    """Check that every prefix can be folded, and that folding again gives the same."""
    outputs, standing = Outputs(), PromptStanding()
    kept: dict[int, Output] = {}
    for step in steps:
        try:
            if changed := outputs.add(step):
                kept[changed.position] = changed
            standing.after([step])
        except Exception as error:  # noqa: BLE001 - no step may make the fold raise: that is the rule
            return [LedgerProblem(step.id, f"cannot be folded: {_one_line(error)}")]
    if fold_outputs(steps) != kept or PromptStanding().after(steps) != standing:
        return [LedgerProblem(steps[-1].id, "folds to something else when folded again")]
    return []


Rule = Callable[[Step, View], Iterator[str]]
"""Yields what is wrong with a step, given a view of the steps before it."""


def _order(step: Step, before: View) -> Iterator[str]:
    if not before.steps and (step.type, step.path) != ("action_call", ""):
        yield "the turn does not begin with its call"
    if before.result(""):
        yield f"{step.type} after the turn's end"
    if step.type == "action_call" and step.path and not before.call(parent(step.path)):
        yield f"a call at {step.path}, under a call that was never made"


def _once(step: Step, before: View) -> Iterator[str]:
    """At each path: one call, then one start per attempt, then one result."""
    if step.type == "action_call":
        if before.call(step.path):
            yield f"a second call at {step.path or '.'}"
        return
    if step.type not in ("action_start", "action_retry", "action_deferred", "action_result"):
        return
    if not before.call(step.path):
        yield f"{step.type} at {step.path or '.'}, where no call was made"
    if before.result(step.path):
        yield f"{step.type} at {step.path or '.'}, which already has a result"
    if step.type == "action_start" and step.payload.get("attempt") != (next_ := _starts(step.path, before) + 1):
        yield f"attempt {step.payload.get('attempt')} at {step.path or '.'} where {next_} is next"


def _fence(step: Step, before: View) -> Iterator[str]:
    """Fences only increase: a worker that lost its claim starts nothing more."""
    if step.type == "action_start":
        earlier = (s.payload.get("fence", 0) for s in reversed(before.steps) if s.type == "action_start")
        if step.payload.get("fence", 0) < (last := next(earlier, 0)):
            yield f"started under claim {step.payload.get('fence')}, after claim {last}"


def _gate(step: Step, before: View) -> Iterator[str]:
    """A call with a gate runs only after a person, a rule or a grant approved exactly that call."""
    gate = gate_of(before, step.path)
    if not step.path or not before.call(gate) or not _ran(step):
        return
    began = step.payload.get("digest")
    yield from _approved(step, before, gate, Decision.APPROVE, began)
    attempt = _starts(step.path, before)
    if step.type == "action_start" and attempt and before.call(card := card_of(before, step.path)):
        yield from _approved(step, before, card, Decision.RUN_AGAIN, card_digest(str(began), attempt))


def _ran(step: Step) -> bool:
    return step.type == "action_start" or (step.type == "action_result" and Actor.parse(step.actor).kind == Kind.TOOL)


def _approved(step: Step, before: View, gate: str, word: str, wanted: JSON) -> Iterator[str]:
    decided = before.result(gate)
    if decided is None or decided.payload.get("decision") != word:
        yield f"{step.type} at {step.path} without an approval at {gate}"
    elif step.type == "action_start" and decided.payload.get("digest") != wanted:
        yield f"what started at {step.path} is not what was approved at {gate}: the digests differ"


def _decision(step: Step, before: View) -> Iterator[str]:
    """A gate is decided by an actor who may, with a known decision, for exactly what was asked or for an edit of it.

    One that somebody else must decide is not approved by whoever asked for the turn (C13).
    """
    call = before.call(step.path)
    if step.type != "action_result" or call is None or not opens_gate(call):
        return
    word, asked = step.payload.get("decision"), call.payload.get("payload", {})
    if Actor.parse(step.actor).kind not in (Kind.USER, Kind.RULE, Kind.GRANT, Kind.SYSTEM):
        yield f"{step.path} was decided by {step.actor}"
    if word not in DECISIONS:
        yield f"{step.path} was decided as {word!r}"
    elif (ask := asked.get("ask")) and ask not in DECISIONS[Decision(str(word))].asks:
        yield f"{step.path}, which asks {ask!r}, was decided as {word!r}"
    if word not in RUNS and word != Decision.EDITED:
        return
    root = before.call("")
    if asked.get("who") == ANOTHER and step.actor in (root and root.actor, asked.get("edited_by")):
        yield f"{step.path} needs somebody other than {step.actor}, who asked for the turn or edited the call"
    if (word == Decision.EDITED) != (step.payload.get("input") is not None and asked.get("who") == ANOTHER):
        yield f"{step.path} was decided as {word!r}, which an edit is where four eyes are needed, and nothing else"
    if step.payload.get("input") is None:
        if (step.payload.get("digest") or "") != (asked.get("digest") or ""):  # a program's question has none
            yield f"the approval at {step.path} is for something other than what was asked: the digests differ"
    elif step.payload.get(MARK) or call.payload.get(MARK):
        return  # what the digest covers was removed; the chain vouches for it
    elif step.payload.get("digest") != _edited_digest(step.payload, asked):
        yield f"the approval at {step.path} is for something other than its input, facts and change: the digests differ"


def _answer(step: Step, before: View) -> Iterator[str]:
    """A question is answered as it was asked, and by somebody else where it says so."""
    call, root = before.call(step.path), before.call("")
    if step.type != "action_result" or call is None or not opens_gate(call):
        return
    if step.payload.get("decision") != Decision.ANSWER:
        return
    asked = call.payload.get("payload", {})
    if asked.get("who") == ANOTHER and root and step.actor == root.actor:
        yield f"{step.path} was answered by {step.actor}, who asked for the turn"
    if (step.payload.get("digest") or "") != (asked.get("digest") or ""):
        yield f"the answer at {step.path} is to something other than what was asked: the digests differ"
    if step.payload.get(MARK) or call.payload.get(MARK):
        return  # the answer was removed
    for field, why in answer_problems(asked, step.payload.get("answer")).items():
        yield f"the answer at {step.path} is none to what was asked: {field or 'answer'}: {' '.join(why)}"


def _asked_again(step: Step, before: View) -> Iterator[str]:
    """A question is asked again at its next card, after an answer or an approval of it as it was asked before."""
    question = before.call(parent(step.path))
    if not (opens_gate(step) and is_gate(step.path) and question and opens_gate(question)):
        return
    number = next(n for n in count() if not before.call(card(question.path, n + 1)))
    last = before.result(card(question.path, number) if number else question.path)
    if step.path != card(question.path, number + 1):
        yield f"the question at {question.path} is asked again at {step.path}, out of turn"
    if last is None or last.payload.get("decision") not in (Decision.ANSWER, Decision.APPROVE):
        yield f"the question at {question.path} is asked again at {step.path}, and was not answered"


def _recorded_call(step: Step, before: View) -> Iterator[str]:
    """A policy shows one output, gives one file, or gets one value, by a call of its own."""
    call = before.call(step.path)
    if step.type != "action_result" or step.failed or call is None or asked_for(call):
        return
    if (name := call.payload["policy"]) not in (SHOW, FILE, VALUE):
        return
    said = [each.type for each in before.said(step.path)]
    if name == SHOW and (kind := call.payload["payload"].get("kind")) is not None:
        expected = [kind]
    else:  # the kind of a redacted call is not kept
        expected = {FILE: ["file"], VALUE: []}.get(name, said[:1])
    if said != expected:
        yield f"the call of {name!r} at {step.path} says {', '.join(said) or 'nothing'}"


def _edited_digest(said: dict[str, JSON], asked: dict[str, JSON]) -> str:
    return shown_digest(asked["tool"], said["input"], asked["schema"], said["facts"], said.get("change"))


def _asks_about_edit(step: Step, before: View) -> bool:
    """Whether this gate asks about exactly the call that an edit under four eyes has just made."""
    last = before.steps[-1] if before.steps else None
    if last is None or not opens_gate(step) or last.payload.get("decision") != Decision.EDITED:
        return False
    asked = step.payload["payload"]
    about = (gate_of(before, parent(step.path)), last.payload.get("digest"), last.actor)
    return about == (step.path, asked.get("digest"), asked.get("edited_by"))


def _waiting(step: Step, before: View) -> Iterator[str]:
    """While a turn waits for people, nothing is called or started; it resumes when nothing is left to decide.

    A start by `system` records what may have started before the site was restored, not that it starts now.
    """
    about_edit = step.type == "action_call" and _asks_about_edit(step, before)
    begins = (step.type in ("action_call", "action_retry") and not about_edit) or (
        step.type == "action_start" and step.actor != "system"
    )
    if begins and before.paused():
        yield f"{step.type} at {step.path or '.'} while the turn waits"
    if step.type == "action_start" and step.path and before.cancelled():
        yield f"{step.path} was started after the turn was stopped"
    if step.type == "pause":
        yield from _pause(step, before)
    if step.type == "resume" and not before.paused():
        yield "resumes, but was not waiting"
    if step.type == "resume" and before.open_gates():
        yield f"resumes while {len(before.open_gates())} decisions are open"


def _pause(step: Step, before: View) -> Iterator[str]:
    """A turn pauses for as many people as are asked, and until the first of its sleeps is over."""
    if (said := step.payload.get("pending_action_count")) != (are := len(before.open_gates())):
        yield f"says that {said} decisions are open, but {are} are"
    first = next((sleep.payload["payload"]["until"] for sleep in before.open_sleeps()), None)
    if (named := step.payload.get("until")) != first:
        yield f"waits until {named}, but its first sleep is until {first}"
    if not are and first is None:
        yield "pauses, and waits for nothing"


def _sleep(step: Step, before: View) -> Iterator[str]:
    """A sleep is over when its time has come, and not before. Only that lets a turn go on for the `time`."""
    call = before.call(step.path)
    ends = step.type == "action_result" and not step.failed and call is not None and sleeps(call)
    if ends and call and datetime.fromisoformat(step.time) < until(call) - CLOCKS_DIFFER:
        yield f"{step.path} was woken at {step.time}, before its time"
    if step.type == "resume" and step.payload.get("resumed_reason") == "time":
        last = before.call(before.steps[-1].path) if before.steps else None
        if last is None or not sleeps(last):
            yield "resumes because a time has come, and no sleep is over"


def _round(step: Step, before: View) -> Iterator[str]:
    """Every answer of a model has a start."""
    if answer_usage(step) is not None and not _starts(step.path, before):
        yield f"an answer at {step.path} to a question that was never asked"


def _partial(step: Step, before: View) -> Iterator[str]:
    """A partial answer is kept if a person stopped it or its time was up. It never becomes a complete answer."""
    stopped = any(said.payload.get("partial") for said in before.at(step.path, "text"))
    if step.type == "text" and step.payload.get("partial") and not _starts(step.path, before):
        yield f"a partial answer at {step.path}, to a question that was never asked"
    if stopped and (step.type == "action_start" or (step.type == "action_result" and not step.failed)):
        yield f"an answer at {step.path}, which was stopped midway"
    elif step.type == "action_result" and stopped and not before.cancelled() and step.payload.get("code") != "timeout":
        yield f"a partial answer at {step.path}, which nobody stopped"


def _end(step: Step, before: View) -> Iterator[str]:
    """At the end of a turn, no call is open, and if it says a usage, that is the sum of its rounds."""
    if step.type != "action_result" or step.path:
        return
    if left := [call.path for call in before.open_calls() if call.path]:
        yield f"the turn ends with {', '.join(left)} open"
    told, used = step.payload.get("usage"), turn_usage(before.steps)
    if is_turn_result(step) and told != used:
        yield f"the turn's usage is {told}, but its rounds used {used}"


def _starts(path: str, before: View) -> int:
    return len(before.at(path, "action_start"))


_RULES: tuple[Rule, ...] = (
    _order, _once, _fence, _gate, _decision, granted, _answer, _asked_again, _recorded_call, _waiting, _sleep, _round,
    _partial, _end,
)  # fmt: skip
