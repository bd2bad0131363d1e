"""Chat Completions of the demo model refuses what the real API would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from agents.engine.ledger import JSON
from tests.wire import chat_request
from tests.wire.refusals import RequestError

Item = dict[str, Any]

USER: Item = {"role": "user", "content": "Hello"}
SAID: Item = {"role": "assistant", "content": "Hi."}
ECHO: Item = {"name": "echo", "parameters": {"type": "object"}}
TOOL: Item = {"type": "function", "function": ECHO}


def call(call_id: JSON = "c1", **more: JSON) -> Item:
    return {"id": call_id, "type": "function", "function": {"name": "echo", "arguments": "{}", **more}}


def asks(*calls: Item, **more: JSON) -> Item:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def result(call_id: JSON = "c1", **more: JSON) -> Item:
    return {"role": "tool", "tool_call_id": call_id, "content": "x", **more}


def without(item: Item, *names: str) -> Item:
    return {name: value for name, value in item.items() if name not in names}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [{"role": "system", "content": "Be."}, USER, SAID, USER],
        [{"role": "developer", "content": [{"type": "text", "text": "Be."}]}, USER],
        [USER, asks(call()), result()],
        [USER, asks({**call(), "index": 0}), result()],
        [USER, asks(call("a"), call("b"), content="Both."), result("b"), result("a"), SAID, USER],
        [USER, asks(call("a")), result("a"), asks(call("b")), result("b")],
        [{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {}}]}],
        [
            USER,
            {**SAID, "refusal": None, "annotations": [], "audio": None, "function_call": None, "tool_calls": None},
            USER,
        ],
    ],
)
def test_sound_histories_are_answered(messages: JSON) -> None:
    """Every order that all servers answer, and a message as the SDK gives it back."""
    chat_request.check({"model": "m", "messages": messages, "tools": [TOOL], "tool_choice": "auto"})


UNANSWERED = "tool_call_ids did not have response messages: "


@pytest.mark.parametrize(
    ("messages", "message", "param"),
    [
        pytest.param([USER, asks(call())], f"{UNANSWERED}c1", "messages", id="no result at the end"),
        pytest.param(
            [USER, asks(call()), USER], f"{UNANSWERED}c1", "messages.[2].role", id="no result before the user"
        ),
        pytest.param([asks(call("a"), call("b")), result("a")], f"{UNANSWERED}b", "messages", id="one of two results"),
        pytest.param(
            [asks(call("a"), call("b")), result("a"), SAID, result("b")],
            f"{UNANSWERED}b",
            "messages.[2].role",
            id="text between",
        ),
        pytest.param([USER, result()], "preceeding message with 'tool_calls'", "messages.[1].role", id="no call"),
        pytest.param([asks(call()), result(), USER, result()], "preceeding", "messages.[3].role", id="result too late"),
        pytest.param(
            [asks(call()), result("c2")],
            "not found in 'tool_calls'",
            "messages.[1].tool_call_id",
            id="another's result",
        ),
        pytest.param(
            [asks(call()), result(), result()],
            "'tool_call_id' of 'c1', in messages[1] and messages[2]",
            "messages.[2].tool_call_id",
            id="result twice",
        ),
        pytest.param(
            [asks(call(), call()), result()], "Duplicate value for 'id'", "messages[0].tool_calls[1].id", id="id twice"
        ),
        pytest.param(
            [asks(call()), result(), asks(call()), result()],
            "Duplicate value",
            "messages[2].tool_calls[0].id",
            id="id again",
        ),
        pytest.param([asks()], "empty array", "messages[0].tool_calls", id="no calls"),
        pytest.param(
            [{**SAID, "tool_calls": ["x"]}], "expected an object", "messages[0].tool_calls[0]", id="call as text"
        ),
        pytest.param([asks(call(""))], "empty string", "messages[0].tool_calls[0].id", id="empty id"),
        pytest.param([asks(call("c" * 41))], "maximum length 40", "messages[0].tool_calls[0].id", id="long id"),
        pytest.param([asks(without(call(), "id"))], "Missing required", "messages[0].tool_calls[0].id", id="no id"),
        pytest.param(
            [asks({**call(), "type": "custom"})],
            "Supported values",
            "messages[0].tool_calls[0].type",
            id="another call",
        ),
        pytest.param(
            [asks(call(name="a.b"))],
            "does not match pattern",
            "messages[0].tool_calls[0].function.name",
            id="dot in a name",
        ),
        pytest.param(
            [asks(call(arguments={}))],
            "Invalid type",
            "messages[0].tool_calls[0].function.arguments",
            id="arguments as object",
        ),
        pytest.param(
            [without(result(), "tool_call_id")], "Missing required", "messages[0].tool_call_id", id="whose result"
        ),
        pytest.param([{"role": "bot", "content": "x"}], "Supported values are", "messages[0].role", id="unknown role"),
        pytest.param([{"content": "x"}], "Missing required", "messages[0].role", id="no role"),
        pytest.param(["Hello"], "expected an object", "messages[0]", id="message as text"),
        pytest.param(
            [{**USER, "type": "message"}], "Unknown parameter", "messages[0].type", id="item of the other API"
        ),
        pytest.param([{"role": "user"}], "expected a string, got null", "messages.[0].content", id="no content"),
        pytest.param([{**SAID, "content": None}], "got null", "messages.[0].content", id="assistant says nothing"),
        pytest.param([{**USER, "content": []}], "empty array", "messages[0].content", id="no parts"),
        pytest.param([{**USER, "content": 1}], "Invalid type", "messages[0].content", id="content as number"),
        pytest.param(
            [{**USER, "content": ["x"]}], "Invalid value: 'None'", "messages[0].content[0]", id="part as text"
        ),
        pytest.param(
            [{**USER, "content": [{"type": "input_text", "text": "x"}]}],
            "Supported values are: 'file', 'image_url', 'input_audio', 'text'.",
            "messages[0].content[0]",
            id="part of the other API",
        ),
        pytest.param(
            [{"role": "system", "content": [{"type": "image_url"}]}],
            "values are: 'text'.",
            "messages[0].content[0]",
            id="picture",
        ),
        pytest.param(
            [{**USER, "content": [{"type": "text"}]}],
            "Missing required",
            "messages[0].content[0].text",
            id="part without text",
        ),
        pytest.param([USER, SAID], "Expected last role User or Tool", "messages", id="the assistant last"),
        pytest.param(
            [USER, asks(call()), result(), USER],
            "Unexpected role 'user' after role 'tool'",
            "messages[3].role",
            id="the user after a result",
        ),
        pytest.param([USER, USER], "must alternate", "messages[1].role", id="the user twice"),
        pytest.param([USER, SAID, SAID, USER], "must alternate", "messages[2].role", id="the assistant twice"),
        pytest.param([SAID, USER], "must alternate", "messages[0].role", id="the assistant first"),
        pytest.param(
            [USER, {"role": "system", "content": "x"}],
            "Unexpected role 'system'",
            "messages[1].role",
            id="the system late",
        ),
        pytest.param([], "Invalid 'messages': empty array.", "messages", id="empty"),
        pytest.param("Hello", "Invalid type for 'messages'", "messages", id="text"),
        pytest.param(None, "Invalid type for 'messages'", "messages", id="null"),
    ],
)
def test_unsound_histories_are_refused(messages: JSON, message: str, param: str) -> None:
    """In the API's words and with the place, so that whoever knows them knows what is wrong."""
    with pytest.raises(RequestError) as refused:
        chat_request.check({"model": "m", "messages": messages})
    assert message in refused.value.message
    assert refused.value.param == param


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param([], "not an object", id="list"),
        pytest.param({"model": None}, "Invalid type for 'model'", id="model null"),
        pytest.param({"model": ""}, "empty string", id="empty model"),
        pytest.param({"input": "Hello"}, "Unknown parameter: 'input'", id="the other API"),
        pytest.param({"stream": 1}, "Invalid type for 'stream'", id="stream as number"),
        pytest.param(
            {"stream_options": {"include_usage": True}}, "only allowed when 'stream'", id="usage of no stream"
        ),
        pytest.param({"tools": []}, "empty array", id="no tools"),
        pytest.param({"tools": [TOOL, TOOL]}, "unique", id="tool twice"),
        pytest.param({"tools": [{"type": "function", **ECHO}]}, "Unknown parameter", id="tool of the other API"),
        pytest.param({"tools": [{"type": "function"}]}, "'tools[0].function'", id="no function"),
        pytest.param({"tools": [{**TOOL, "type": "shell"}]}, "Invalid value: 'shell'", id="another kind of tool"),
        pytest.param(
            {"tools": [{**TOOL, "function": {**ECHO, "name": "a.b"}}]},
            "does not match pattern",
            id="dot in a tool's name",
        ),
        pytest.param(
            {"tools": [{**TOOL, "function": {**ECHO, "parameters": {"type": "string"}}}]},
            "Invalid schema for function 'echo'",
            id="schema of no object",
        ),
        pytest.param({"tool_choice": "auto"}, "'tool_choice' is only allowed when", id="choice without tools"),
        pytest.param({"parallel_tool_calls": True}, "only allowed when 'tools'", id="parallel without tools"),
    ],
)
def test_unsound_requests_are_refused(body: JSON, message: str) -> None:
    """What stands around the history."""
    whole = {"model": "m", "messages": [USER], **body} if isinstance(body, dict) else body
    with pytest.raises(RequestError) as refused:
        chat_request.check(whole)
    assert message in refused.value.message


def test_messages_are_required() -> None:
    """By their name."""
    with pytest.raises(RequestError) as refused:
        chat_request.check({"model": "m"})
    assert (refused.value.message, refused.value.code) == (
        "Missing required parameter: 'messages'.",
        "missing_required_parameter",
    )
