"""The rules that the steps of every turn keep, as one pass over them. A prefix of a good ledger is a good ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.core.exceptions import ObjectDoesNotExist
from django.db import OperationalError

from agents.engine import paths
from agents.engine.actors import Actor, Kind
from agents.engine.closing import spent, usage_of
from agents.engine.decisions import DECISIONS, RUNS, Decision
from agents.engine.execution.gates import ANOTHER, card_digest, shown_digest
from agents.engine.ledger import JSON, Step
from agents.engine.outputs.kinds import Output
from agents.engine.outputs.timeline import Outputs
from agents.engine.paths import parent
from agents.engine.view import View
from conversations.ledger.prompt_row import PromptStanding
from conversations.ledger.redacted import MARK

ERROR_MOST = 200
"""Characters of what an error says."""


@dataclass(frozen=True)
class LedgerProblem:
    """A rule that is broken: at which step, and what is wrong there."""

    seq: int
    what: str

    def __str__(self) -> str:
        return f"seq {self.seq}: {self.what}"


@contextmanager
def reporting_errors(problems: list[LedgerProblem], seq: int) -> Iterator[None]:
    """Where a look for problems fails, that is one of them: what was tampered with may hold anything.

    That the database is away, or that a row went meanwhile, is raised on: it says nothing of the ledger.
    """
    try:
        yield
    except ObjectDoesNotExist:
        raise
    except Exception as error:
        if isinstance(error, OperationalError) and "decode" not in str(error):  # so SQLite says that a text is none
            raise
        problems.append(LedgerProblem(seq, f"cannot be checked: {_one_line(error)}"))


def problems_of(steps: Iterable[Step]) -> list[LedgerProblem]:
    """What is wrong with the ledger of one turn, in its order; empty where nothing is. Never raises.

    Step types that no rule knows are skipped.
    """
    before, problems = View(), []
    for step in steps:
        last = before.steps[-1].id if before.steps else 0
        if step.id <= last:
            problems.append(LedgerProblem(step.id, f"stands after step {last}"))
        try:
            problems += [LedgerProblem(step.id, what) for rule in _RULES for what in rule(step, before)]
        except Exception as error:  # noqa: BLE001 - a payload that was tampered with may hold anything
            problems.append(LedgerProblem(step.id, f"cannot be read: {_one_line(error)}"))
        before.add(step)
    return problems + _folding(before.steps)


def fold_outputs(steps: Iterable[Step]) -> dict[int, Output]:
    """The outputs of a turn by position."""
    outputs = Outputs()
    return {changed.position: changed for step in steps if (changed := outputs.add(step))}


def _one_line(error: Exception) -> str:
    """On one line, and no longer: it may quote whatever stood there."""
    return " ".join(repr(error).split())[:ERROR_MOST]


def _folding(steps: list[Step]) -> list[LedgerProblem]:
    """Every prefix folds, and to the same when it is folded again."""
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
        return [LedgerProblem(steps[-1].id, "folds to something else the second time")]
    return []


Rule = Callable[[Step, View], Iterator[str]]
"""What is wrong with a step that comes after the steps of the view."""


def _order(step: Step, before: View) -> Iterator[str]:
    if not before.steps and (step.type, step.path) != ("action_call", ""):
        yield "the turn does not begin with its call"
    if before.result(""):
        yield f"{step.type} after the turn's end"
    if step.type == "action_call" and step.path and not before.call(parent(step.path)):
        yield f"a call at {step.path}, below one that was never made"


def _once(step: Step, before: View) -> Iterator[str]:
    """One call, one result, and one start per attempt, in that order, at each path."""
    if step.type == "action_call":
        if before.call(step.path):
            yield f"a second call at {step.path or '.'}"
        return
    if step.type not in ("action_start", "action_retry", "action_deferred", "action_result"):
        return
    if not before.call(step.path):
        yield f"{step.type} at {step.path or '.'}, where no call was made"
    if before.result(step.path):
        yield f"{step.type} at {step.path or '.'}, which has its result"
    if step.type == "action_start" and step.payload.get("attempt") != (next_ := _starts(step.path, before) + 1):
        yield f"attempt {step.payload.get('attempt')} at {step.path or '.'} where {next_} is next"


def _fence(step: Step, before: View) -> Iterator[str]:
    """Claims count up: a worker that lost its claim starts nothing more."""
    if step.type == "action_start":
        earlier = (s.payload.get("fence", 0) for s in reversed(before.steps) if s.type == "action_start")
        if step.payload.get("fence", 0) < (last := next(earlier, 0)):
            yield f"started under claim {step.payload.get('fence')}, after claim {last}"


def _gate(step: Step, before: View) -> Iterator[str]:
    """A call with a gate runs once a person, a rule or a grant approved exactly it."""
    gate = paths.gate(step.path)
    if not step.path or not before.call(gate) or not _ran(step):
        return
    began = step.payload.get("digest")
    yield from _approved(step, before, gate, Decision.APPROVE, began)
    attempt = _starts(step.path, before)
    if step.type == "action_start" and before.call(card := paths.card(step.path, attempt)):
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
    """A gate is decided by who may, with a word that is known, and binds what was asked, or the edit of it."""
    call = before.call(step.path)
    if step.type != "action_result" or call is None or call.payload.get("policy") != paths.HUMAN:
        return
    word, asked = step.payload.get("decision"), call.payload.get("payload", {})
    if Actor.parse(step.actor).kind not in (Kind.USER, Kind.RULE, Kind.GRANT, Kind.SYSTEM):
        yield f"{step.path} was decided by {step.actor}"
    if word not in DECISIONS:
        yield f"{step.path} was decided as {word!r}"
    if word not in RUNS:
        return
    if step.payload.get("input") is None:
        if step.payload.get("digest") != asked.get("digest"):
            yield f"the approval at {step.path} is of something else than was asked: the digests differ"
    elif step.payload.get(MARK) or call.payload.get(MARK):
        return  # what the digest goes over is not there any more; that it was is the chain's to say
    elif step.payload.get("digest") != _edited_digest(step.payload, asked):
        yield f"the approval at {step.path} is of something else than its input, facts and change: the digests differ"


def _four_eyes(step: Step, before: View) -> Iterator[str]:
    """A gate that another must decide is not opened by whoever asked for the turn (C13)."""
    call, root = before.call(step.path), before.call("")
    if step.type != "action_result" or call is None or root is None or call.payload.get("policy") != paths.HUMAN:
        return
    allows = step.payload.get("decision") in RUNS
    if allows and call.payload.get("payload", {}).get("who") == ANOTHER and step.actor == root.actor:
        yield f"{step.path} needs another than {step.actor}, who asked for the turn"


def _edited_digest(said: dict[str, JSON], asked: dict[str, JSON]) -> str:
    return shown_digest(asked["tool"], said["input"], asked["schema"], said["facts"], said.get("change"))


def _waiting(step: Step, before: View) -> Iterator[str]:
    """While a turn waits for people, nothing is called or begun; it goes on when nothing is left to decide.

    A start by `system` says what may have begun before the site was restored, not that it begins now.
    """
    begins = step.type in ("action_call", "action_retry") or (step.type == "action_start" and step.actor != "system")
    if begins and before.paused():
        yield f"{step.type} at {step.path or '.'} while the turn waits"
    if step.type == "action_start" and step.path and before.cancelled():
        yield f"{step.path} was started after the turn was stopped"
    if step.type == "pause" and step.payload.get("pending_action_count") != len(before.open_gates()):
        yield f"says that {step.payload.get('pending_action_count')} decisions are open: {len(before.open_gates())} are"
    if step.type == "resume" and not before.paused():
        yield "goes on, but was not waiting"
    if step.type == "resume" and before.open_gates():
        yield f"goes on while {len(before.open_gates())} decisions are open"


def _round(step: Step, before: View) -> Iterator[str]:
    """An answer of a model has a start."""
    if spent(step) is not None and not _starts(step.path, before):
        yield f"an answer at {step.path} to a question that was never asked"


def _partial(step: Step, before: View) -> Iterator[str]:
    """The beginning of an answer is kept where a person stopped it, or its time was up; it never becomes an answer."""
    stopped = any(said.payload.get("partial") for said in before.at(step.path, "text"))
    if step.type == "text" and step.payload.get("partial") and not _starts(step.path, before):
        yield f"a part of an answer at {step.path}, to a question that was never asked"
    if stopped and (step.type == "action_start" or (step.type == "action_result" and not step.failed)):
        yield f"an answer at {step.path}, which was stopped in its midst"
    elif step.type == "action_result" and stopped and not before.cancelled() and step.payload.get("code") != "timeout":
        yield f"a part of an answer at {step.path}, which nobody stopped"


def _end(step: Step, before: View) -> Iterator[str]:
    """At the end of a turn nothing is open, and its usage is that of its rounds."""
    if step.type != "action_result" or step.path:
        return
    if left := [call.path for call in before.open_calls() if call.path]:
        yield f"the turn ends with {', '.join(left)} open"
    if (told := step.payload.get("usage")) != (used := usage_of(before)):
        yield f"the turn's usage is {told}, its rounds' {used}"


def _starts(path: str, before: View) -> int:
    return len(before.at(path, "action_start"))


_RULES: tuple[Rule, ...] = (_order, _once, _fence, _gate, _decision, _four_eyes, _waiting, _round, _partial, _end)
