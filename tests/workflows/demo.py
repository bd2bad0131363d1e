"""The demo model as the model of a test: its rules answer, without a server between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.engine.interfaces.messages import AssistantMessage, Message, ResultMessage
from agents.engine.interfaces.provider import FINAL_ANSWER, Answer, Request
from agents.engine.ledger import JSON, canonical
from agents.providers.demo.reply import Reply
from agents.providers.demo.rules import answer
from agents.testing import Question
from tests.engine.support import seen
from workflows.shipped.component.workflows import Plan
from workflows.shipped.research.workflows import Answer as FromDocuments
from workflows.shipped.research.workflows import Searches
from workflows.shipped.summary.workflows import Summary

FIELDS = {
    name: schema
    for form in (Plan, Searches, FromDocuments, Summary)
    for name, schema in form.model_json_schema()["properties"].items()
}
FORMS: dict[str, JSON] = {FINAL_ANSWER: {"type": "object", "properties": FIELDS}}
"""The schemas of tools that the demo looks into; a Question has only their names, and so all forms are one."""


def demo_script(question: Question) -> list[Any]:
    """The script of a trial: what the demo model says."""
    reply = _reply(question.messages, {name: FORMS.get(name, {}) for name in question.tools})
    return [reply.text, *reply.calls] if reply.text else list(reply.calls)


def demo_answer(request: Request) -> Answer:
    """The script of a provider of the tests."""
    reply = _reply(seen(request), {tool.name: tool.schema for tool in request.tools})
    return Answer(reply.text, reply.calls, model="demo", finish="tool_calls" if reply.calls else "stop")


def _reply(messages: Sequence[Message], tools: Mapping[str, JSON]) -> Reply:
    offered = [{"type": "function", "name": name, "parameters": schema} for name, schema in tools.items()]
    return answer({"model": "demo", "input": [item for each in messages for item in _items(each)], "tools": offered})


def _items(message: Message) -> list[dict[str, JSON]]:
    if isinstance(message, ResultMessage):
        return [{"type": "function_call_output", "call_id": message.call_id, "output": message.content}]
    role = "assistant" if isinstance(message, AssistantMessage) else "user"
    said = [{"type": "message", "role": role, "content": message.text}] if message.text else []
    calls = message.calls if isinstance(message, AssistantMessage) else ()
    asked = [
        {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": canonical(call.arguments)}
        for call in calls
    ]
    return [*said, *asked]
