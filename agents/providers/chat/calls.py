"""The calls of a streamed chat completion, assembled from their fragments.

A fragment belongs to the call of its `index`. Servers break this rule in known ways, all of which are handled: no index
at all (github.com/ollama/ollama/issues/7881), the same index for every call (github.com/ollama/ollama/issues/15457),
the index as text, the name or the id in every fragment, a new id in every fragment, arguments as an object.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agents.engine.interfaces.provider import ToolRequest
from agents.engine.ledger import JSON
from agents.providers.common.values import arguments_text, as_object, as_text, cut_short, parse_arguments


@dataclass(eq=False)
class _Call:
    """A call that is being assembled. `pieces`: the text of its arguments, as far as it has arrived."""

    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    def complete(self) -> bool:
        """Return whether its arguments are already a complete object, so that more would belong to another call."""
        closed = bool(self.pieces) and self.pieces[-1].rstrip().endswith("}")
        return closed and parse_arguments(self.written())[1] is None

    def request(self) -> ToolRequest:
        arguments, raw = parse_arguments(self.written())
        return ToolRequest(self.name, arguments, self.call_id, raw)

    def written(self) -> str:
        """Return its arguments as text."""
        return "".join(self.pieces)


class Calls:
    """The calls of an answer, assembled from fragments, in the order in which they began."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}

    def feed(self, fragment: dict[str, JSON]) -> None:
        """Add one entry of a chunk's `tool_calls`."""
        function = as_object(fragment.get("function"))
        call_id, name, arguments = as_text(fragment.get("id")), as_text(function.get("name")), function.get("arguments")
        if not (call_id or name or arguments):
            return
        call = self._call(fragment.get("index"), call_id, name)
        call.call_id = call.call_id or call_id
        if name != call.name and not call.pieces:  # some give the name in pieces, some give it again and again
            call.name += name
        if isinstance(arguments, dict):
            call.pieces = [arguments_text(arguments)]
        elif text := as_text(arguments):
            call.pieces.append(text)

    def requests(self, cut: str = "") -> tuple[ToolRequest, ...]:
        """Return the calls, complete or not. `cut` says what cut the answer: then the last call is incomplete."""
        calls = [call.request() for call in self._calls]
        if cut and calls:
            calls[-1] = cut_short(calls[-1], self._calls[-1].written(), cut)
        return tuple(call for call in calls if call.name or not cut)

    def _call(self, index: JSON, call_id: str, name: str) -> _Call:
        """Return the call that a fragment belongs to; a new one if the fragment begins it."""
        place = _number(index)
        call = self._without_index(call_id) if place is None else self._at.get(place)
        if call is None or _is_another(call, call_id, name, place is not None):
            call = _Call()
            self._calls.append(call)
        if place is not None:
            self._at[place] = call
        return call

    def _without_index(self, call_id: str) -> _Call | None:
        """Return the call with this id, or else the current call."""
        known = next((call for call in self._calls if call_id and call.call_id == call_id), None)
        return known or (self._calls[-1] if self._calls else None)


def _number(index: JSON) -> int | None:
    if isinstance(index, str) and index.isdecimal():
        return int(index)
    return index if isinstance(index, int) else None


def _is_another(call: _Call, call_id: str, name: str, numbered: bool) -> bool:
    """Return whether a fragment with the index of `call` begins another call, judging by its name and id."""
    if not (name and call.name):
        return False
    if call_id and call.call_id:
        return call_id != call.call_id or (not numbered and call.complete())
    if name == call.name:
        return call.complete()
    return bool(call.pieces) or not numbered  # a name can arrive in pieces only if there is an index
