"""Validation of the tools in a request: the same in both APIs, except for the place of a tool's function."""

from __future__ import annotations

from agents.engine.ledger import JSON
from tests.wire.refusals import RequestError, check_keys, check_name, check_not_empty, optional, required

FUNCTION_KEYS = frozenset({"name", "description", "parameters", "strict"})


def check_tools(body: dict[str, JSON], *, nested: bool = False) -> None:
    """Raise RequestError for invalid `tools` or `tool_choice`.

    `nested`: a tool is `{"type": "function", "function": {...}}`, as in Chat Completions; otherwise the keys of its
    function are beside `type`, as in Responses.
    """
    optional(body, "tools", list)
    tools = body.get("tools")
    if tools is not None:
        check_not_empty(tools, "tools")
    if "tool_choice" in body and not tools:
        message = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
        raise RequestError(message, "tool_choice")
    seen: set[str] = set()
    for index, tool in enumerate(tools or ()):
        where = f"tools[{index}]"
        name = _check_tool(tool, where, nested)
        if name in seen:
            raise RequestError(f"Tool names must be unique: '{name}' is there twice.", f"{where}.name", "invalid_value")
        seen.add(name)


def _check_tool(tool: JSON, where: str, nested: bool) -> str:
    if not isinstance(tool, dict):
        raise RequestError(f"Invalid type for '{where}': expected an object.", where, "invalid_type")
    if required(tool, "type", str, where) != "function":
        message = f"Invalid value: '{tool['type']}'. This server knows only 'function'."
        raise RequestError(message, f"{where}.type", "invalid_value")
    if nested:
        check_keys(tool, {"type", "function"}, where)
        return _check_function(required(tool, "function", dict, where), f"{where}.function")
    return _check_function({key: value for key, value in tool.items() if key != "type"}, where)


def _check_function(function: dict[str, JSON], where: str) -> str:
    name = check_name(function, where)
    check_keys(function, FUNCTION_KEYS, where)
    schema = required(function, "parameters", dict, where)
    if schema.get("type") != "object":
        message = (
            f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', "
            f"got 'type: \"{schema.get('type')}\"'."
        )
        raise RequestError(message, f"{where}.parameters", "invalid_function_parameters")
    return name
