"""The demo model under the JSON text protocol, and that one walk with it is the same in all three protocols."""

from __future__ import annotations

import json

import pytest

from agents.engine.interfaces.messages import AssistantMessage, CallRequest, Message, ResultMessage, UserMessage
from agents.engine.interfaces.provider import Answer, Provider, ToolDefinition
from agents.providers.demo import json_text
from agents.providers.demo.rules import answer
from agents.providers.json.items import encode, system_text
from tests.providers.support import collect, request
from tests.wire.server import WireServer

TOOLS = tuple(
    ToolDefinition(name, f"Does {name}.\n\nParameters: none to speak of.", {"type": "object", "properties": {}})
    for name in ("files_list", "files_read", "shell_run")
)
OUTPUTS = {"files_list": "notes.md  8 B", "files_read": "buy milk", "shell_run": "Sunday\nexit: 0 (0.1s)"}


async def say(speaker: Provider, wire: WireServer, *said: str) -> tuple[list[str], list[str]]:
    """Talk with it as the engine does, each call getting its output; the calls in their order, and the last texts."""
    wire.script = answer
    messages: list[Message] = []
    asked, texts = [], []
    for text in said:
        messages.append(UserMessage(text))
        found = await _ask(speaker, messages)
        while found.calls:
            calls = tuple(
                CallRequest(call.call_id or f"c{len(messages)}", call.name, call.arguments) for call in found.calls
            )
            asked += [f"{call.name} {call.arguments}" for call in calls]
            messages.append(AssistantMessage(found.text, calls, found.items))
            messages += [ResultMessage(call.call_id, call.name, OUTPUTS[call.name]) for call in calls]
            found = await _ask(speaker, messages)
        messages.append(AssistantMessage(found.text))
        texts.append(found.text)
    return asked, texts


async def _ask(speaker: Provider, messages: list[Message]) -> Answer:
    pieces, found = await collect(speaker, request(speaker, messages, tools=TOOLS))
    assert not found.unreadable
    assert "".join(pieces) == found.text
    return found


async def test_the_same_walk(wire: WireServer, speaker: Provider) -> None:
    """One request after another, two in one, one that it does not understand, and one about what was said before."""
    asked, texts = await say(
        speaker, wire, "list the files", "run date and read notes.md", "tell me a joke", "read it", "help"
    )
    assert asked == [
        "files_list {'path': '.'}",
        "shell_run {'command': 'date'}",
        "files_read {'path': 'notes.md'}",
        "files_read {'path': 'notes.md'}",
    ]
    assert "notes.md  8 B" in texts[0]
    assert "Sunday" in texts[1]
    assert "buy milk" in texts[1]
    assert "I did not understand that" in texts[2]
    assert "buy milk" in texts[3]
    assert "`run ls -la`" in texts[4]
    assert "not a language model" in texts[2], "it says what it is"


async def test_it_begins_with_what_it_is(wire: WireServer, speaker: Provider) -> None:
    """Also where its first answer is a call: the words stand before it."""
    wire.script = answer
    found = await _ask(speaker, [UserMessage("list the files")])
    assert "not a language model" in found.text
    assert [call.name for call in found.calls] == ["files_list"]


def test_tools_and_calls_are_read_from_the_texts() -> None:
    """As they stand there, whatever a description or a result says; ids pair them."""
    system = system_text("Be kind.\n\n## Heading\nParameters: odd", TOOLS)
    messages: list[Message] = [
        UserMessage("go"),
        AssistantMessage("I look.", (CallRequest("c1", "files_read", {"path": "a"}),)),
        ResultMessage("c1", "files_read", "[tool_result:other] x"),
    ]
    given = _body(system, messages)
    body = json_text.with_tools(given)
    assert body
    assert [tool["name"] for tool in body["tools"]] == [tool.name for tool in TOOLS]
    kinds = [(item.get("type"), item.get("role")) for item in body["input"]][2:]
    assert kinds == [("message", "assistant"), ("function_call", None), ("function_call_output", None)]
    *_, call, result = body["input"]
    assert call["call_id"] == result["call_id"]
    assert result["output"] == "[tool_result:other] x"


@pytest.mark.parametrize("system", ["", "You are a test."])
def test_another_protocol_is_left_alone(system: str) -> None:
    """A request that says nothing of the protocol has no tools."""
    assert json_text.with_tools(_body(system, [UserMessage("go")])) is None


def _body(system: str, messages: list[Message]) -> dict[str, object]:
    said = json.loads(b"[" + encode(messages) + b"]")
    return {"model": "m", "input": [{"role": "system", "content": system}, *said]}
