"""Encoding for the JSON text protocol: the description of the tools, and the history, without real tool calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from agents.engine.interfaces.messages import AssistantMessage, Message, ResultMessage, SiteMessage, UserMessage
from agents.engine.interfaces.provider import ToolDefinition
from agents.engine.ledger import JSON
from agents.providers.chat.items import said_by_site, said_by_user
from agents.providers.chat.role_alternation import alternate_roles
from agents.providers.common.values import BETWEEN, dumps, fit_name, once_each

INSTRUCTION = """\
# Tools

To use a tool, output ONLY one JSON object of this form, with all three keys, no others, and no words around it:

{"tool": "NAME", "parameters": {}, "terminate": false}

"tool" is the name of one of the tools below. "parameters" is an object that fits the tool's JSON Schema. "terminate" \
is false if you want to go on when you have read the result, and true if this call is the last thing to do: its result \
then goes to the person, and you are not asked again. One tool a message; its result comes in the next message, which \
begins with [tool_result:NAME]. When you need no tool, answer in plain text: that is your final answer.

These are the tools:"""
"""The part of the system message about calls (S46). The tools follow it."""

NO_CATEGORY = "Other tools"
"""The heading of tools without a category that come after others."""


def system_text(system: str, tools: Sequence[ToolDefinition]) -> str:
    """Return the system message with the instruction and the tools; unchanged if there are no tools.

    The tools keep their order, below a heading wherever the category changes (S62).
    """
    if not tools:
        return system
    written: list[str] = []
    for category, of_one in groupby(tools, key=lambda tool: tool.category):
        if category or written:
            written.append(f"## {' '.join(category.split()) or NO_CATEGORY}")
        written += map(_tool, of_one)
    return BETWEEN.join(filter(None, [system, INSTRUCTION, *written]))


@once_each
def _tool(tool: ToolDefinition) -> str:
    schema = json.dumps(tool.schema, ensure_ascii=False, separators=(",", ":"))
    return f"### {tool.name}\n{tool.description.strip()}\nParameters: {schema}"


def encode(messages: Sequence[Message], *, alternate: bool = False) -> bytes:
    """Return the messages as JSON, joined by commas. Equal messages give equal bytes, so that prompt caches hit.

    A call is written as the object that asks for it, its result as a message that begins with `[tool_result:NAME]`
    (R17). Each call is followed by its own result, because a model imitates the answers that it sees in the history.
    `alternate`: the server insists on roles that alternate.
    """
    return b",".join(dumps(item) for item in _items(alternate_roles(messages) if alternate else messages))


def _items(messages: Sequence[Message]) -> Iterator[dict[str, JSON]]:
    results = {message.call_id: message for message in messages if isinstance(message, ResultMessage)}
    for message in messages:
        if isinstance(message, UserMessage):
            yield said_by_user(message)
        elif isinstance(message, SiteMessage):
            yield said_by_site(message)
        elif isinstance(message, AssistantMessage):
            yield from _answer(message, results)
    for left in results.values():  # results of calls that are elsewhere
        yield _result(left)


def _answer(message: AssistantMessage, results: dict[str, ResultMessage]) -> Iterator[dict[str, JSON]]:
    text = message.text
    for call in message.calls:
        yield {"role": "assistant", "content": call_as_text(text, call.name, call.arguments)}
        if result := results.pop(call.call_id, None):
            yield _result(result)
        text = ""
    if text:
        yield {"role": "assistant", "content": text}


def call_as_text(text: str, name: str, arguments: dict[str, JSON]) -> str:
    """Return an answer of the model: its text, and the object that asks for a call."""
    # The arguments' keys are sorted, so that they give the same bytes before and after they were stored.
    parameters = json.dumps(arguments, ensure_ascii=False, sort_keys=True)
    written = f'{{"tool": "{fit_name(name)}", "parameters": {parameters}, "terminate": false}}'
    return f"{text}\n\n```json\n{written}\n```" if text else written


def _result(result: ResultMessage) -> dict[str, JSON]:
    return {"role": "user", "content": f"[tool_result:{fit_name(result.name)}] {BETWEEN.join(result.texts)}"}
