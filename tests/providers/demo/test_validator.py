"""The server refuses what the real API would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from agents.engine.ledger import JSON
from tests.wire import request
from tests.wire.refusals import RequestError

Item = dict[str, Any]

USER: Item = {"role": "user", "content": "Hello"}
SAID: Item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}
TOOL: Item = {"type": "function", "name": "echo", "parameters": {"type": "object"}}
REASONING: Item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}


def call(call_id: JSON = "c1", **more: JSON) -> Item:
    return {"type": "function_call", "call_id": call_id, "name": "echo", "arguments": "{}", **more}


def result(call_id: JSON = "c1", **more: JSON) -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": "x", **more}


def without(item: Item, *names: str) -> Item:
    return {name: value for name, value in item.items() if name not in names}


@pytest.mark.parametrize(
    "items",
    [
        "Hello",
        [USER],
        [USER, SAID, USER],
        [USER, call(), result()],
        [USER, call("a"), call("b"), result("b"), result("a")],
        [USER, call("a"), result("a"), SAID, USER],
        [USER, SAID, call(), result()],
        [USER, call("a"), SAID, result("a")],
        [USER, REASONING, call(), result()],
        [USER, REASONING, SAID, REASONING, call("a"), REASONING, call("b"), result("a"), result("b")],
        [{"role": "developer", "content": [{"type": "input_text", "text": "x"}]}],
    ],
)
def test_sound_histories_are_answered(items: JSON) -> None:
    """Every order that the real API answers."""
    request.check({"model": "m", "input": items, "tools": [TOOL], "tool_choice": "auto"})


@pytest.mark.parametrize(
    ("items", "message"),
    [
        pytest.param([USER, call()], "No tool output found for function call c1", id="no result at the end"),
        pytest.param([USER, SAID], "Expected last role User or Tool", id="the assistant last"),
        pytest.param([USER, call(), USER], "No tool output found", id="no result before the user speaks"),
        pytest.param([USER, call("a"), call("b"), result("a")], "function call b", id="one of two results"),
        pytest.param([call("a"), call("b"), result("a"), SAID, result("b")], "call b", id="text between results"),
        pytest.param([call("a"), call("b"), result("a"), call("d"), result("b")], "call b", id="call between results"),
        pytest.param([USER, result()], "No tool call found", id="result without call"),
        pytest.param([USER, result(), call()], "No tool call found", id="result before call"),
        pytest.param([USER, call(), result(), result()], "No tool call found", id="result twice"),
        pytest.param([call(), result(), call(), result()], "Duplicate call_id", id="id twice"),
        pytest.param([call(), call(), result()], "Duplicate call_id", id="id twice in one answer"),
        pytest.param([call("")], "empty string", id="empty id"),
        pytest.param([call(None)], "Invalid type", id="null id"),
        pytest.param([call("c" * 65)], "maximum length 64", id="long id"),
        pytest.param([without(call(), "call_id")], "Missing required parameter", id="no id"),
        pytest.param([call(name="shell.run")], "does not match pattern", id="dot in a name"),
        pytest.param([call(name="")], "empty string", id="empty name"),
        pytest.param([call(name="n" * 65)], "maximum length 64", id="long name"),
        pytest.param([call(name="ä")], "does not match pattern", id="umlaut in a name"),
        pytest.param([call(arguments={})], "Invalid type for 'input[0].arguments'", id="arguments as object"),
        pytest.param([call(), result(output={})], "Invalid type for 'input[1].output'", id="output as object"),
        pytest.param([call(), result(output=None)], "Invalid type for 'input[1].output'", id="output null"),
        pytest.param([call(), without(result(), "output")], "Missing required parameter", id="no output"),
        pytest.param([call(call_type="x")], "Unknown parameter: 'input[0].call_type'", id="unknown key"),
        pytest.param([{"type": "tool_use"}], "Supported values are", id="unknown type"),
        pytest.param([{"type": ["message"]}], "Supported values are", id="type as list"),
        pytest.param([{}], "Missing required parameter: 'input[0].type'", id="no type"),
        pytest.param(["Hello"], "expected an object", id="item as text"),
        pytest.param([{"role": "tool", "content": "x"}], "Supported values are", id="unknown role"),
        pytest.param([{"role": "user"}], "Missing required parameter", id="no content"),
        pytest.param([{"role": "user", "content": None}], "Invalid type", id="content null"),
        pytest.param([{**SAID, "role": "user"}], "Invalid value: 'output_text'", id="output part of a user"),
        pytest.param(
            [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}],
            "Invalid value: 'input_text'",
            id="input part of the assistant",
        ),
        pytest.param(
            [{"role": "user", "content": [{"type": "input_text"}]}], "content[0].text", id="part without text"
        ),
        pytest.param([{"role": "user", "content": ["x"]}], "Invalid value: 'None'", id="part as text"),
        pytest.param([REASONING], "without its required following item", id="reasoning at the end"),
        pytest.param([REASONING, USER], "without its required following item", id="reasoning before the user"),
        pytest.param([call(), REASONING, result()], "without its required", id="reasoning before a result"),
        pytest.param([without(REASONING, "encrypted_content"), SAID], "not found", id="reasoning by id alone"),
        pytest.param([without(REASONING, "summary"), SAID], "Missing required", id="reasoning without summary"),
        pytest.param([{**REASONING, "status": None}, SAID], "Unknown parameter", id="reasoning with status"),
        pytest.param([], "Missing required parameter: 'input'", id="empty"),
        pytest.param("", "Missing required parameter: 'input'", id="empty text"),
        pytest.param(None, "Missing required parameter: 'input'", id="null"),
        pytest.param({}, "Invalid type for 'input'", id="object"),
    ],
)
def test_unsound_histories_are_refused(items: JSON, message: str) -> None:
    """In the API's words, so that whoever knows them knows what is wrong."""
    with pytest.raises(RequestError) as refused:
        request.check({"model": "m", "input": items})
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param([], "not an object", id="list"),
        pytest.param(None, "not an object", id="no JSON"),
        pytest.param({"model": None}, "Invalid type for 'model'", id="model null"),
        pytest.param({"model": ""}, "empty string", id="empty model"),
        pytest.param({"input": None}, "Missing required parameter: 'input'", id="no input"),
        pytest.param({"messages": []}, "Unknown parameter: 'messages'", id="the other API"),
        pytest.param({"stream": 1}, "Invalid type for 'stream'", id="stream as number"),
        pytest.param({"include": "x"}, "Invalid type for 'include'", id="include as text"),
        pytest.param({"include": [1]}, "Invalid type for 'include[0]'", id="include of numbers"),
        pytest.param({"tools": []}, "empty array", id="no tools"),
        pytest.param({"tools": {}}, "Invalid type for 'tools'", id="tools as object"),
        pytest.param({"tools": [TOOL, TOOL]}, "unique", id="tool twice"),
        pytest.param({"tools": ["echo"]}, "expected an object", id="tool as text"),
        pytest.param({"tools": [{**TOOL, "name": "a.b"}]}, "does not match pattern", id="dot in a tool's name"),
        pytest.param({"tools": [{"type": "function", "function": TOOL}]}, "tools[0].name", id="tool of the other API"),
        pytest.param({"tools": [{**TOOL, "type": "shell"}]}, "Invalid value: 'shell'", id="another kind of tool"),
        pytest.param({"tools": [{**TOOL, "extra": 1}]}, "Unknown parameter", id="unknown key of a tool"),
        pytest.param({"tools": [without(TOOL, "parameters")]}, "Missing required", id="tool without schema"),
        pytest.param({"tools": [{**TOOL, "parameters": {}}]}, 'type: "object"', id="schema of no object"),
        pytest.param({"tool_choice": "auto"}, "only allowed when", id="choice without tools"),
    ],
)
def test_unsound_requests_are_refused(body: JSON, message: str) -> None:
    """What stands around the history."""
    whole = {"model": "m", "input": "Hello", **body} if isinstance(body, dict) else body
    with pytest.raises(RequestError) as refused:
        request.check(whole)
    assert message in refused.value.message
