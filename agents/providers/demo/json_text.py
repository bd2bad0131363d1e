"""The demo model's side of the JSON text protocol, in which the system message describes the tools.

A request is converted into one with real tools and calls, so that the rules know only one form. The call of the answer
is converted back into text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from agents.engine.ledger import JSON
from agents.providers.demo.reply import Reply
from agents.providers.demo.situation import items, text_of
from agents.providers.json.answer import read
from agents.providers.json.items import call_as_text

ASKED_FOR = '{"tool": "NAME"'
"""The part of the system message by which the protocol is recognised."""

TOOL = re.compile(
    r"^### (?P<name>[\w-]+)\n(?P<description>.*?)\nParameters: (?P<parameters>\{[^\n]*\})$", re.DOTALL | re.MULTILINE
)
RESULT = re.compile(r"\[tool_result:(?P<name>[\w-]+)\] ")

Item = dict[str, JSON]


def with_tools(body: Item) -> Item | None:
    """Return the request with the tools and calls that its texts describe; None if it uses another protocol."""
    given = items(body)
    system = next((text_of(item) for item in given if item.get("role") in ("system", "developer")), "")
    if body.get("tools") or ASKED_FOR not in system:
        return None
    tools = [
        {"type": "function", **found.groupdict(), "parameters": json.loads(found["parameters"])}
        for found in TOOL.finditer(system.partition(ASKED_FOR)[2])
    ]
    return {**body, "input": list(_items(given)), "tools": tools}


def with_call_as_text(reply: Reply) -> Reply:
    """Return the reply with its first call written as text."""
    if not reply.calls:
        return reply
    call = reply.calls[0]
    return replace(reply, text=call_as_text(reply.text, call.name, call.arguments), calls=())


def _items(given: list[Item]) -> Iterator[Item]:
    """Yield the messages, with calls and results in place of the texts that describe them."""
    asked = ""
    for number, item in enumerate(given):
        text = text_of(item)
        said = read(text) if item.get("role") == "assistant" else None
        result = RESULT.match(text) if item.get("role") == "user" else None
        if said and said.call:
            asked = f"json_{number}"
            if said.text:
                yield {"type": "message", "role": "assistant", "content": said.text}
            arguments = json.dumps(said.call.arguments)
            yield {"type": "function_call", "call_id": asked, "name": said.call.name, "arguments": arguments}
        elif result and asked:
            yield {"type": "function_call_output", "call_id": asked, "output": text[result.end() :]}
            asked = ""
        else:
            yield item
