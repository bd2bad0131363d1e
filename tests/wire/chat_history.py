"""Validation of a request's `messages`: refuses what the real Chat Completions API would refuse, in its words.

It is stricter than the real one in two points. The id of a call must be unique in the whole conversation. With
`strict_turns` the roles must alternate as the strictest servers and templates demand. Written from the API's reference
(developers.openai.com/api/reference/resources/chat) and from reported errors.
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

CALL_ID_CHARACTERS = 40
"""The longest call id that the API accepts here; Responses accepts 64 characters."""

KEYS = {
    "developer": {"role", "content", "name"},
    "system": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "refusal", "tool_calls", "annotations", "audio", "function_call"},
    "tool": {"role", "content", "tool_call_id"},
}
"""The roles, and the keys of their messages."""

SYSTEM = ("developer", "system")
"""The roles that may speak first, and only once."""

PARTS = {
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
}
"""The kinds of parts in a content that is an array; all other roles have only text."""


def check(messages: list[JSON], *, strict_turns: bool = True) -> None:
    """Raise RequestError for the first thing in `messages` that the API would refuse."""
    check_not_empty(messages, "messages")
    calls, roles = _ChatCalls(), list[str]()
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        role = _check_message(message, where)
        roles.append(role)
        if role == "tool":
            calls.answer(required(message, "tool_call_id", str, where), index)
            continue
        calls.all_answered(f"messages.[{index}].role")
        if message.get("tool_calls") is not None:
            calls.ask(_call_ids(message, where), where)
    calls.all_answered("messages")
    if strict_turns:
        _check_turns(roles)


def _check_turns(roles: list[str]) -> None:
    """Raise RequestError unless user and assistant alternate, as Mistral's API and many templates demand."""
    for index, (role, before) in enumerate(zip(roles, ["", *roles], strict=False)):
        place = f"messages[{index}].role"
        if role in SYSTEM and before:
            raise RequestError(f"Unexpected role '{role}' after role '{before}'", place)
        if role == "user" and before == "tool":
            raise RequestError("Unexpected role 'user' after role 'tool'", place)
        if (role == "assistant" and before in {"", *SYSTEM}) or role == before != "tool":
            raise RequestError("Conversation roles must alternate user/assistant/user/assistant/...", place)
    if roles[-1] == "assistant":
        raise RequestError("Expected last role User or Tool for serving but got assistant", "messages")


class _ChatCalls:
    """The ids of all calls so far and, for the calls of the last message, where each was answered, if it was."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._last: dict[str, int | None] = {}

    def ask(self, ids: list[str], where: str) -> None:
        for number, call_id in enumerate(ids):
            if call_id in self._seen:
                place = f"{where}.tool_calls[{number}].id"
                raise RequestError(f"Invalid parameter: Duplicate value for 'id' of '{call_id}'.", place)
            self._seen.add(call_id)
            self._last[call_id] = None

    def answer(self, call_id: str, index: int) -> None:
        if not self._last:
            raise RequestError(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                "'tool_calls'.",
                f"messages.[{index}].role",
            )
        place = f"messages.[{index}].tool_call_id"
        if call_id not in self._last:
            message = f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message."
            raise RequestError(message, place)
        if (before := self._last[call_id]) is not None:
            raise RequestError(
                f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}', "
                f"in messages[{before}] and messages[{index}].",
                place,
            )
        self._last[call_id] = index

    def all_answered(self, place: str) -> None:
        """Raise RequestError if a call has no result yet, because what comes now is not a result."""
        waiting = [call_id for call_id, index in self._last.items() if index is None]
        if waiting:
            raise RequestError(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: " + ", ".join(waiting),
                place,
            )
        self._last = {}


def _check_message(message: JSON, where: str) -> str:
    if not isinstance(message, dict):
        raise RequestError(f"Invalid type for '{where}': expected an object.", where, "invalid_type")
    role = required(message, "role", str, where)
    if role not in KEYS:
        wanted = quote_all(KEYS)
        raise RequestError(
            f"Invalid value: '{role}'. Supported values are: {wanted}.", f"{where}.role", "invalid_value"
        )
    check_keys(message, KEYS[role], where)
    _check_content(message, role, where)
    return str(role)


def _check_content(message: dict[str, JSON], role: str, where: str) -> None:
    content = message.get("content")
    if isinstance(content, str):
        if not content and role in ("user", "assistant") and not message.get("tool_calls"):
            raise RequestError(f"Invalid '{where}.content': the message must not be empty.", f"{where}.content")
        return
    if (
        content is None
        and role == "assistant"
        and not (message.get("tool_calls") is None and message.get("refusal") is None)
    ):
        return
    place = f"{where}.content"
    if content is None:
        raise RequestError("Invalid value for 'content': expected a string, got null.", place.replace("[", ".[", 1))
    check_not_empty(required(message, "content", list, where), place)
    for index, part in enumerate(content):
        kind, known = part.get("type") if isinstance(part, dict) else None, PARTS.get(role, {"text"})
        if kind not in known:
            wanted = f"Supported values are: {quote_all(known)}."
            raise RequestError(f"Invalid value: '{kind}'. {wanted}", f"{place}[{index}]", "invalid_value")
        if kind == "text":
            required(part, "text", str, f"{place}[{index}]")


def _call_ids(message: dict[str, JSON], where: str) -> list[str]:
    """Return the ids of a message's calls. Raises RequestError for an invalid call."""
    place, ids = f"{where}.tool_calls", []
    check_not_empty(required(message, "tool_calls", list, where), place)
    for index, call in enumerate(message["tool_calls"]):
        here = f"{place}[{index}]"
        if not isinstance(call, dict):
            raise RequestError(f"Invalid type for '{here}': expected an object.", here, "invalid_type")
        check_keys(call, {"id", "type", "function", "index"}, here)  # `index` is from a stream: LiteLLM sends it back
        if required(call, "type", str, here) != "function":
            refused = f"Invalid value: '{call['type']}'. Supported values are: 'function'."
            raise RequestError(refused, f"{here}.type", "invalid_value")
        function = required(call, "function", dict, here)
        check_keys(function, {"name", "arguments"}, f"{here}.function")
        check_name(function, f"{here}.function")
        required(function, "arguments", str, f"{here}.function")
        ids.append(required(call, "id", str, here))
        check_length(ids[-1], f"{here}.id", CALL_ID_CHARACTERS)
    return ids
