"""The ledger: an append-only list of steps that records what happened. It is the only source of truth."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, overload

JSON = Any
"""A value that JSON can represent: a dict with string keys, list, str, int, finite float, bool or None."""


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical(value: JSON) -> str:
    """Encode `value` as canonical JSON: sorted keys, no spaces, ASCII only. Raises ValueError for NaN and infinity."""
    return _canonical.encode(value)


def digest(value: JSON) -> str:
    """Return the SHA-256 of `value` in canonical JSON, as 64 hex digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


DEEPEST = 100
"""The deepest nesting of lists and objects accepted from a model or a tool, because walks over it are recursive."""


LARGEST_BITS = 14_000
"""The bits of the largest whole number. Python reads no numbers of more than 4,300 digits (`sys.int_info`)."""


def copy_json(value: object, where: str = "payload", levels: int = DEEPEST + 10) -> JSON:
    """Return a deep copy. Raises TypeError, naming the place, for anything JSON cannot represent exactly.

    Also raises TypeError if lists and dicts are nested more than `levels` deep; the default leaves room for the few
    levels that a step adds around a value.
    """
    try:
        return _copied(value, levels)
    except _NotJSON as error:
        place = where + "".join(reversed(error.within))
        raise TypeError(f"{place[:50] if error.too_deep else place}: {error.why}") from None


class _NotJSON(Exception):
    """A value is not JSON. `within` is its place in what was copied, from the inside out."""

    def __init__(self, why: str, *, too_deep: bool = False) -> None:
        super().__init__(why)
        self.why, self.too_deep, self.within = why, too_deep, list[str]()


_COPIED_AS_IS = frozenset({str, bool, type(None)})


def _copied(value: object, levels: int) -> JSON:
    """Return a deep copy. Each turn copies hundreds of values: the name of a place is made only if it is needed."""
    if type(value) in _COPIED_AS_IS:
        return value
    if isinstance(value, dict | list):
        if not levels:
            raise _NotJSON("nested too deep", too_deep=True)
        return _copied_dict(value, levels - 1) if isinstance(value, dict) else _copied_list(value, levels - 1)
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        if value.bit_length() > LARGEST_BITS:
            raise _NotJSON(f"a number of some {value.bit_length() * 3 // 10:,} digits is not JSON here")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _NotJSON(f"{value!r} is not JSON")
        return value
    raise _NotJSON(f"a {type(value).__name__} is not JSON")


def _copied_dict(value: dict[object, object], levels: int) -> JSON:
    copied: dict[str, JSON] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise _NotJSON(f"the key {key!r} is not a string")
        try:
            copied[key] = item if type(item) in _COPIED_AS_IS else _copied(item, levels)
        except _NotJSON as error:
            error.within.append(f".{key}")
            raise
    return copied


def _copied_list(value: list[object], levels: int) -> JSON:
    copied: list[JSON] = []
    for item in value:
        try:
            copied.append(item if type(item) in _COPIED_AS_IS else _copied(item, levels))
        except _NotJSON as error:
            error.within.append(f"[{len(copied)}]")
            raise
    return copied


def valid_text(text: str) -> str:
    """Return `text` with NUL and lone surrogates replaced, which databases and network protocols reject."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


ADDED = frozenset({"returns"})
"""The keys that the engine adds to the payload of a result."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened.

    `path` names the call it belongs to; by default the call whose policy returned the step. `id` and `time` (ISO 8601,
    UTC) are set by the runtime; ids increase with time, and 0 means not yet in a ledger. An id that is a text, such as
    a UUID of the policy's own, becomes 0. Raises TypeError for a payload that is not JSON.
    """

    actor: str
    type: str
    payload: dict[str, JSON] = field(default_factory=dict)
    path: str = ""
    id: int = 0
    time: str = ""

    def __post_init__(self) -> None:
        given: object = self.id
        if not isinstance(given, int):
            object.__setattr__(self, "id", 0)
        if not isinstance(self.payload, dict):
            raise TypeError(f"payload: a {type(self.payload).__name__} is not a dict")
        object.__setattr__(self, "payload", copy_json(self.payload))  # the caller may go on changing its own dict

    @classmethod
    def recorded(cls, **values: JSON) -> Step:
        """Return a step of a ledger, with these values of all its fields.

        The payload was checked when the step was made, and is neither checked nor copied.
        """
        step = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(step, name, value)
        return step

    @property
    def failed(self) -> bool:
        """Whether this is the result of a failed call: its `error` is True, with a `code` and a `message`."""
        said = self.payload
        return said.get("error") is True and isinstance(said.get("code"), str) and isinstance(said.get("message"), str)

    @property
    def value(self) -> JSON:
        """The value of a result: its `output`, or if it has none, its payload without what the engine adds (S115)."""
        if "output" in self.payload:
            return self.payload["output"]
        added = ADDED | {"began"} if self.failed else ADDED
        return {key: value for key, value in self.payload.items() if key not in added} or None


@dataclass(frozen=True)
class Ledger:
    """Steps in the order in which they happened. Frozen: `append` and `extend` return a new ledger.

    Raises TypeError for what is no step.
    """

    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        given: tuple[object, ...] = self.steps
        if others := [type(step).__name__ for step in given if not isinstance(step, Step)]:
            raise TypeError(f"a ledger holds steps, not a {others[0]}")

    def append(self, step: Step) -> Ledger:
        """Return a new ledger with this step at its end."""
        return Ledger((*self.steps, step))

    def extend(self, steps: Iterable[Step]) -> Ledger:
        """Return a new ledger with these steps at its end."""
        return Ledger((*self.steps, *steps))

    def numbered(self) -> Ledger:
        """Return a ledger in which the ids of the steps are 1, 2, 3 and so on, whatever they were."""
        return Ledger(tuple(replace(step, id=number) for number, step in enumerate(self.steps, 1)))

    def reference(self) -> dict[str, JSON]:
        """Return what is recorded for a ledger inside a payload: `{seq, digest}`, never its steps."""
        content = [[s.path, s.actor, s.type, s.payload] for s in self.steps]
        return {"seq": self.steps[-1].id if self.steps else 0, "digest": digest(content)}

    def __await__(self) -> Generator[None, None, Ledger]:
        """Return the ledger itself: `await ctx.get_ledger()` is the same as `ctx.get_ledger()`."""
        yield from ()
        return self

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
    """Return a text step: said by the `model`, or by the `system` about a turn."""
    return Step(actor, "text", {"text": text, **more})


def action_call(actor: str, policy: str, payload: dict[str, JSON] | None = None, **more: JSON) -> Step:
    """Return a step that asks for a policy to be called. The caller of the policy that returns it may invoke it."""
    return Step(actor, "action_call", {"policy": policy, "payload": payload or {}, **more})


def action_result(actor: str, output: JSON = None, **more: JSON) -> Step:
    """Return the successful result of a call."""
    return Step(actor, "action_result", {"output": output, **more})


def action_error(actor: str, code: str, message: str, *, path: str = "", **more: JSON) -> Step:
    """Return the error result of a call: `code` for programs, `message` for people and models."""
    return Step(actor, "action_result", {"error": True, "code": code, "message": message, **more}, path=path)
