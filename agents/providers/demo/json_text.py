"""The JSON text protocol as the demo model reads and speaks it: a request without tools, whose system message has them.

The request is read as if it had come with real tools, so that the rules know only one form; the answer's call is
written as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from agents.engine.ledger import JSON
from agents.providers.demo.script import Reply, items, text_of
from agents.providers.json.answer import read

ASKED_FOR = '{"tool": "NAME"'
"""Stands in the system message where the protocol is spoken."""

TOOL = re.compile(
    r"^## (?P<name>[\w-]+)\n(?P<description>.*?)\nParameters: (?P<schema>\{[^\n]*\})$", re.DOTALL | re.MULTILINE
)
RESULT = re.compile(r"\[tool_result:(?P<name>[\w-]+)\] ")

Item = dict[str, JSON]


def with_tools(body: Item) -> Item | None:
    """The request with the tools and calls that are written in its texts; None where another protocol is spoken."""
    given = items(body)
    system = next((text_of(item) for item in given if item.get("role") in ("system", "developer")), "")
    if body.get("tools") or ASKED_FOR not in system:
        return None
    return {**body, "input": list(_items(given)), "tools": list(_tools(system.partition(ASKED_FOR)[2]))}


def written(reply: Reply) -> Reply:
    """The reply with its first call as text."""
    if not reply.calls:
        return reply
    call = reply.calls[0]
    asked = json.dumps({"tool": call.name, "parameters": call.arguments, "terminate": False}, ensure_ascii=False)
    return replace(reply, text=f"{reply.text}\n\n```json\n{asked}\n```" if reply.text else asked, calls=())


def _tools(system: str) -> Iterator[Item]:
    for found in TOOL.finditer(system):
        tool = {"name": found["name"], "description": found["description"], "parameters": json.loads(found["schema"])}
        yield {"type": "function", **tool}


def _items(given: list[Item]) -> Iterator[Item]:
    """The messages, with calls and results in the places of the texts that stand for them."""
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
