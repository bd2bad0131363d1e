"""The ledger: what happened, as a growing list of steps. Nothing else is the truth."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, overload

JSON = Any
"""A value that JSON can say: a dict with string keys, list, str, int, finite float, bool or None."""


def canonical(value: JSON) -> str:
    """`value` as canonical JSON: sorted keys, no spaces, ASCII escapes. Raises ValueError for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(value: JSON) -> str:
    """The sha256 of `value` in canonical JSON, as 64 hex digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


DEEPEST = 100
"""Levels of lists and objects within each other, of what a model or a tool says: walks over it go down one by one."""


def copy_json(value: object, where: str = "payload", levels: int = DEEPEST + 10) -> JSON:
    """A copy that shares no dict or list. Raises TypeError, naming the place, for what JSON cannot say exactly.

    And for more than so many `levels` of lists and dicts; a step wraps a few of its own around what was said.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{where}: {value!r} is not JSON")
        return value
    if isinstance(value, list | dict) and not levels:
        raise TypeError(f"{where[:50]}: nested too deep")
    if isinstance(value, list):
        return [copy_json(item, f"{where}[{index}]", levels - 1) for index, item in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{where}: the key {key!r} is not a string")
        return {key: copy_json(item, f"{where}.{key}", levels - 1) for key, item in value.items()}
    raise TypeError(f"{where}: a {type(value).__name__} is not JSON")


def valid_text(text: str) -> str:
    """`text` with NUL and lone surrogates replaced, which no database and no wire takes."""
    return text.replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened.

    `path` names the call it belongs to; left out, it is the call whose policy returned the step.
    `id` and `time` (ISO 8601, UTC) are given by the runtime; ids grow with time, 0 means not in a ledger yet.
    Raises TypeError for a payload that is not JSON.
    """

    actor: str
    type: str
    payload: dict[str, JSON] = field(default_factory=dict)
    path: str = ""
    id: int = 0
    time: str = ""

    def __post_init__(self) -> None:
        if not self.id:  # what stands in a ledger has been checked
            if not isinstance(self.payload, dict):
                raise TypeError(f"payload: a {type(self.payload).__name__} is not a dict")
            object.__setattr__(self, "payload", copy_json(self.payload))  # its maker may go on changing its own

    @property
    def failed(self) -> bool:
        """Whether this is the result of a call that went wrong."""
        return bool(self.payload.get("error"))


@dataclass(frozen=True)
class Ledger:
    """Steps in the order in which they happened. Frozen: `append` and `extend` return a new ledger."""

    steps: tuple[Step, ...] = ()

    def append(self, step: Step) -> Ledger:
        """A new ledger with this step at its end."""
        return Ledger((*self.steps, step))

    def extend(self, steps: Iterable[Step]) -> Ledger:
        """A new ledger with these steps at its end."""
        return Ledger((*self.steps, *steps))

    def numbered(self) -> Ledger:
        """A ledger whose steps all have ids: those that have none get the next one."""
        steps, last = [], 0
        for step in self.steps:
            last = step.id or last + 1
            steps.append(step if step.id else replace(step, id=last))
        return Ledger(tuple(steps))

    def reference(self) -> dict[str, JSON]:
        """What is recorded where a ledger stands in a payload: `{seq, digest}`, never its steps."""
        content = [[s.path, s.actor, s.type, s.payload] for s in self.steps]
        return {"seq": self.steps[-1].id if self.steps else 0, "digest": digest(content)}

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Ledger: ...
    def __getitem__(self, index: int | slice) -> Step | Ledger:
        return Ledger(self.steps[index]) if isinstance(index, slice) else self.steps[index]


EMPTY = Ledger()

# The canonical shapes (S115).


def text(actor: str, text: str, **more: JSON) -> Step:
    """Something said: by the `model`, or by the `system` about a turn."""
    return Step(actor, "text", {"text": text, **more})


def action_call(actor: str, policy: str, payload: dict[str, JSON] | None = None, **more: JSON) -> Step:
    """A policy asked for. Returned by a policy, it is a call that its caller may invoke."""
    return Step(actor, "action_call", {"policy": policy, "payload": payload or {}, **more})


def action_result(actor: str, output: JSON = None, **more: JSON) -> Step:
    """What a call came to."""
    return Step(actor, "action_result", {"output": output, **more})


def action_error(actor: str, code: str, message: str, **more: JSON) -> Step:
    """How a call failed: `code` for programs, `message` for people and models."""
    return Step(actor, "action_result", {"error": True, "code": code, "message": message, **more})
