"""Validation of a request's `input`: refuses what the real Responses API would refuse, in its words.

It is stricter than the real one in two points. The results of a call must follow it before anything else. With
`strict_turns` the assistant must not speak last: servers that convert the items into chat messages insist on that.
Written from the API's reference (developers.openai.com/api/reference/resources/responses) and from reported errors.
"""

from __future__ import annotations

from agents.engine.ledger import JSON
from tests.wire.refusals import (
    RequestError,
    check_keys,
    check_length,
    check_name,
    check_not_empty,
    quote_all,
    required,
)

CALL_ID_CHARACTERS = 64

ROLES = {
    "user": {"input_text", "input_image", "input_file"},
    "system": {"input_text"},
    "developer": {"input_text"},
    "assistant": {"output_text", "refusal"},
}
"""The roles, and the kinds of content parts that each may use."""

KEYS = {
    "message": {"type", "id", "role", "content", "status", "phase"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status"},
    "function_call_output": {"type", "id", "call_id", "output", "status"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content"},
}
"""The kinds of items that this server knows, and the keys of each."""


def check(items: list[JSON], *, strict_turns: bool = True) -> None:
    """Raise RequestError for the first thing in `items` that the API would refuse."""
    calls = _Calls()
    reasoning = None
    for index, item in enumerate(items):
        where = f"input[{index}]"
        kind = _kind(item, where)
        check_keys(item, KEYS[kind], where)
        if kind == "message":
            _check_message(item, where)
            calls.interrupted_by(item["role"])
        elif kind == "function_call":
            check_name(item, where)
            required(item, "arguments", str, where)
            calls.open(_call_id(item, where), where)
        elif kind == "function_call_output":
            _check_output(item, where)
            calls.close(_call_id(item, where))
        else:
            _check_reasoning(item, where)
            calls.interrupted_by("assistant")
        if reasoning and (kind == "function_call_output" or item.get("role") in {"user", "system", "developer"}):
            raise _dangling(reasoning)
        reasoning = item if kind == "reasoning" else None
    if reasoning:
        raise _dangling(reasoning)
    calls.all_closed()
    if strict_turns and items and items[-1].get("role") == "assistant":
        raise RequestError("Expected last role User or Tool for serving but got assistant.", "input")


class _Calls:
    """The calls seen so far, and those that do not have a result yet."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._open: list[str] = []
        self._answering = False

    def open(self, call_id: str, where: str) -> None:
        if call_id in self._seen:
            raise RequestError(f"Duplicate call_id '{call_id}' found in input.", f"{where}.call_id", "invalid_value")
        self.interrupted_by("assistant")
        self._seen.add(call_id)
        self._open.append(call_id)

    def close(self, call_id: str) -> None:
        if call_id not in self._open:
            raise RequestError(f"No tool call found for function call output with call_id {call_id}.", "input")
        self._open.remove(call_id)
        self._answering = bool(self._open)

    def interrupted_by(self, role: str) -> None:
        """Check a message after calls. Only the assistant may add one, and only before the first result."""
        if role != "assistant" or self._answering:
            self.all_closed()

    def all_closed(self) -> None:
        if self._open:
            raise RequestError(f"No tool output found for function call {self._open[0]}.", "input")


def _kind(item: JSON, where: str) -> str:
    if not isinstance(item, dict):
        raise RequestError(f"Invalid type for '{where}': expected an object.", where, "invalid_type")
    kind = item.get("type", "message" if "role" in item else None)
    if kind is None:
        place = f"{where}.type"
        raise RequestError(f"Missing required parameter: '{place}'.", place, "missing_required_parameter")
    if not isinstance(kind, str) or kind not in KEYS:
        raise RequestError(f"Invalid value: '{kind}'. Supported values are: {quote_all(KEYS)}.", where, "invalid_value")
    return kind


def _check_message(item: dict[str, JSON], where: str) -> None:
    role = required(item, "role", str, where)
    if role not in ROLES:
        raise RequestError(
            f"Invalid value: '{role}'. Supported values are: {quote_all(ROLES)}.", where, "invalid_value"
        )
    if isinstance(item.get("content"), str):
        return
    for index, part in enumerate(required(item, "content", list, where)):
        place = f"{where}.content[{index}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in ROLES[role]:
            wanted = quote_all(ROLES[role])
            raise RequestError(f"Invalid value: '{kind}'. Supported values are: {wanted}.", place, "invalid_value")
        if kind in {"input_text", "output_text"}:
            required(part, "text", str, place)


def _check_output(item: dict[str, JSON], where: str) -> None:
    """Raise RequestError unless the output is a text, or a list of parts that each hold one."""
    if isinstance(item.get("output"), str):
        return
    place = f"{where}.output"
    check_not_empty(required(item, "output", list, where), place)
    for index, part in enumerate(item["output"]):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind != "input_text":
            message = f"Invalid value: '{kind}'. Supported values are: 'input_text'."
            raise RequestError(message, f"{place}[{index}]", "invalid_value")
        required(part, "text", str, f"{place}[{index}]")


def _check_reasoning(item: dict[str, JSON], where: str) -> None:
    required(item, "summary", list, where)
    if not (item.get("encrypted_content") or item.get("content")):
        raise RequestError(
            f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false. "
            "Try again with `store` set to true, or remove this item from your input.",
            "input",
        )


def _dangling(item: dict[str, JSON]) -> RequestError:
    name = item.get("id")
    return RequestError(f"Item '{name}' of type 'reasoning' was provided without its required following item.", "input")


def _call_id(item: dict[str, JSON], where: str) -> str:
    call_id = required(item, "call_id", str, where)
    check_length(call_id, f"{where}.call_id", CALL_ID_CHARACTERS)
    return str(call_id)
