"""Redacted payloads: what the fold and the rules need is kept, everything else is replaced by "[redacted]".

The keys that are kept are listed for each step type; whatever is not listed counts as content. Needs no database, so
that ledgers in files are checked with it too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING

from agents.engine.actors import Actor, Kind
from agents.engine.ledger import JSON, Step, canonical
from agents.engine.outputs.registry import BUILT_IN, find_kind
from agents.engine.paths import HUMAN
from agents.engine.root import AGENT
from agents.engine.view import SLEEP

if TYPE_CHECKING:
    from conversations.models import Step as StepRow

PLACEHOLDER = "[redacted]"
"""What replaces a text."""
MARK = "redacted"
"""The key that is true in a redacted payload."""

STAYS: Mapping[str, frozenset[str]] = {
    "action_call": frozenset({"policy", "call_id", "terminate", "tool", "turn", "origin", "code_version"}),
    "action_start": frozenset({"attempt", "digest", "fence", "snapshot", "history", "tier", "reason", "limits"}),
    "action_retry": frozenset({"attempt", "code", "wait_seconds"}),
    "action_deferred": frozenset(),
    "action_result": frozenset(
        {
            "error", "code", "usage", "model", "finish", "cost_nano_usd", "decision", "via", "digest", "state",
            "stop_reason", "returns", "began",
        }
    ),
    "state": frozenset({"plugin"}),
    "pause": frozenset({"pending_action_count", "until", "steps_used", "steps_remaining"}),
    "resume": frozenset({"resumed_reason", "steps_remaining"}),
    "cancel": frozenset(),
    "note": frozenset({"code"}),
}  # fmt: skip
"""The keys kept in payloads of built-in step types. For outputs, their kind says; for other types, none are kept."""
ASKED_STAYS: Mapping[str, frozenset[str]] = {
    "": frozenset({"tier", "continues", "repeats", "trigger"}),  # what the site says, wherever it stands
    "model": frozenset({"round"}),
    HUMAN: frozenset(
        {"ask", "tool", "title", "preview", "undoable", "risk", "digest", "who", "edited_by", "grantable", "expires_at"}
    ),
    SLEEP: frozenset({"until"}),
}
"""The keys kept in the input of a call: the turn itself (""), a round, a gate, a sleep. Of a tool's, nothing is."""
FILE_STAYS = frozenset({"id", "size"})
SYSTEM_STAYS = frozenset({"id", "version"})
COPY_LEAST = 8
"""The length from which a text is searched for in other steps. Shorter texts occur everywhere."""
_PIECE, _STRIDE = 5, 4
"""Any COPY_LEAST characters of a text contain a whole piece that begins at a multiple of the stride."""
EMPTY = frozenset({"value", "items", "data", "schema", "problems"})
"""Keys whose content is emptied without a placeholder: their readers would take a placeholder for data."""


@dataclass(frozen=True, slots=True)
class KeptStep:
    """A step as it was stored. `time` is ISO 8601 in UTC. `payload` is text, which may not be valid JSON."""

    seq: int
    prompt: int
    path: str
    actor: str
    type: str
    time: str
    payload: str
    digest: str

    @classmethod
    def of(cls, row: StepRow) -> KeptStep:
        """Convert a row of the database."""
        time = row.time.astimezone(UTC).isoformat()
        return cls(row.seq, row.prompt_id, row.path, row.actor, row.type, time, row.payload, row.digest)

    def step(self) -> Step:
        """Return it as an engine step. A payload that cannot be read becomes {}; the chain reports that."""
        payload = parsed(self.payload) or {}
        return Step.recorded(
            actor=self.actor, type=self.type, payload=payload, path=self.path, id=self.seq, time=self.time
        )


def parsed(payload: str) -> dict[str, JSON] | None:
    """Return the JSON object in this text; None if there is none."""
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def redacted(step: KeptStep) -> str:
    """Return the payload of this step without its content, as canonical JSON. Redacting twice changes nothing."""
    payload = parsed(step.payload)
    if payload is None:
        return canonical({MARK: True})
    left = _kept(payload, _stays(step.type))
    if step.type == "action_call" and isinstance(asked := payload.get("payload"), dict):
        left["payload"] = _asked(step, str(payload.get("policy")), asked)
        if not step.path and isinstance(site := payload.get("site"), dict):
            left["site"] = _site(site)
    return canonical(left | {MARK: True})


def still_has_content(step: KeptStep) -> bool:
    """Whether a step that was redacted nevertheless has content.

    Only its app knows what is kept of a third-party kind, and that app may have changed or been removed. So such a step
    only has to be marked as redacted.
    """
    if step.type in STAYS or step.type in BUILT_IN:
        return redacted(step) != step.payload
    return not is_redacted(step.payload)


def has_content(step: KeptStep) -> bool:
    """Whether this step has content that can be redacted."""
    payload = json.loads(step.payload)
    return not payload.get(MARK) and json.loads(redacted(step)) != payload | {MARK: True}


def is_redacted(payload: str) -> bool:
    """Whether this payload is marked as redacted."""
    return f'"{MARK}":true' in payload and json.loads(payload).get(MARK) is True


def sha256(text: str) -> str:
    """Return the SHA-256 of a text: of a payload, it is what the chain covers."""
    return hashlib.sha256(text.encode()).hexdigest()


def texts(value: JSON) -> Iterator[str]:
    """Yield the texts in a payload, without its keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


def contains_any(searched: Set[str]) -> Callable[[str], bool]:
    """Return a function that says whether a text contains any of these texts, each at least COPY_LEAST characters long.

    It looks up short pieces of them at every few characters of the text: searching for thousands takes hardly longer
    than for one.
    """
    pieces: dict[str, set[str]] = {}
    for each in searched:
        for at in range(_STRIDE):
            pieces.setdefault(each[at : at + _PIECE], set()).add(each)

    def holds(text: str) -> bool:
        found = pieces.keys() & {text[at : at + _PIECE] for at in range(0, len(text), _STRIDE)}
        return any(each in text for each in set[str]().union(*(pieces[piece] for piece in found)))

    return holds


def _stays(type: str) -> frozenset[str]:
    if type in STAYS:
        return STAYS[type]
    kind = find_kind(type)
    return kind.stays if kind else frozenset()


def _kept(values: dict[str, JSON], stays: Set[str]) -> dict[str, JSON]:
    """Return these values, those whose names do not stay without their content."""
    return {name: value if name in stays else _without(name, value) for name, value in values.items()}


def _asked(step: KeptStep, policy: str, asked: dict[str, JSON]) -> dict[str, JSON]:
    """Return the input of a call without its content. Whatever a model asked for is content, whatever it calls.

    So is all that a policy was asked, other than the agent; its text is what people read as the message.
    """
    if not step.path and policy == AGENT:
        return _site(asked)
    if not step.path:
        said = {"text": PLACEHOLDER} if isinstance(asked.get("text"), str) and asked["text"].strip() else {}
        return _emptied() | said if asked else {}
    stays = ASKED_STAYS.get(policy)
    if stays is None or Actor.parse(step.actor).kind not in (Kind.RUNTIME, Kind.POLICY):
        return _emptied() if asked else {}
    left = _kept(asked, stays)
    if isinstance(schema := asked.get("schema"), str) and len(schema) == 64:  # its digest
        left["schema"] = schema
    return left


def _site(said: dict[str, JSON]) -> dict[str, JSON]:
    """Return what the site says of a turn without its content: texts, and the names of files.

    Which version of a system prompt it had stays. Its text goes: it may call a person by name.
    """
    left = _kept(said, ASKED_STAYS[""])
    if isinstance(system := said.get("system"), dict):
        left["system"] = _kept(system, SYSTEM_STAYS)
    if isinstance(files := said.get("files"), list):
        left["files"] = [_kept(file, FILE_STAYS) if isinstance(file, dict) else _without("", file) for file in files]
    return left


def _without(name: str, value: JSON) -> JSON:
    """Return an empty value of the same type."""
    if isinstance(value, str):
        return PLACEHOLDER if value else ""
    if isinstance(value, bool) or value is None:
        return value if value is None else False
    if isinstance(value, int | float):
        return 0
    if isinstance(value, list):
        return [PLACEHOLDER] if value and name not in EMPTY else []
    if name == "change":
        return {
            "path": PLACEHOLDER,
            "before": None if value.get("before") is None else PLACEHOLDER,
            "after": PLACEHOLDER,
        }
    return _emptied() if value and name not in EMPTY else {}


def _emptied() -> dict[str, JSON]:
    """Return the JSON object that replaces another one."""
    return {MARK: PLACEHOLDER}
