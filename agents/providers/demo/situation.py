"""Where a conversation stands when the demo model is asked: read from the request alone, nothing is remembered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.engine.ledger import JSON
from agents.providers.demo.script import items, spoke

Item = dict[str, JSON]

ATTACHED = re.compile(r"^\[Attached: .+ It lies in the workspace as (?P<path>.+)\.\]$", re.MULTILINE)
"""What stands below a message for each file that was given with it (agents.engine.interfaces.attached)."""

CHANGED = re.compile(r"\A\[A person changed[^\n]*\]\n")
"""What stands above the result of a call whose input a person edited (agents.engine.agent.projection)."""

FILES = re.compile(r"(\n\n\[file [^\n]+)+\Z")
"""What stands below the last result of an answer for each file that its calls made (agents.engine.agent.projection)."""

FAILED = re.compile(r"Error \((?P<code>\w+)\): (?P<why>.*)", re.DOTALL)


@dataclass(frozen=True)
class Result:
    """A call and what came of it.

    `name` is the tool's wire name, `arguments` what it ran with, `changed` whether a person edited them; `code` is
    empty unless it failed, and then `text` says why.
    """

    name: str
    arguments: dict[str, JSON]
    text: str
    code: str = ""
    changed: bool = False


@dataclass(frozen=True)
class Situation:
    """What was said last, which tools are offered for it by wire name, and what was done about it so far.

    `files` are the paths that "it" may stand for: the attached ones, else the one that was last worked on. `first`:
    nobody was answered yet.
    """

    said: str
    offered: dict[str, JSON]
    done: tuple[Result, ...]
    files: tuple[str, ...]
    first: bool

    @classmethod
    def of(cls, body: dict[str, JSON]) -> Situation:
        """Read it from a request's body, in the shape of the Responses API."""
        given = items(body)
        last = max((index for index, item in enumerate(given) if spoke(item)), default=len(given))
        said = "\n".join(_texts(given[last])) if last < len(given) else ""
        return cls(
            said=ATTACHED.sub("", said).strip(),
            offered={tool["name"]: tool for tool in body.get("tools") or ()},
            done=tuple(_results(given[last:])),
            files=_files(given[: last + 1]),
            first=not any(item.get("role") == "assistant" or item.get("type") == "function_call" for item in given),
        )

    def result_of(self, name: str, arguments: JSON) -> Result | None:
        """What came of this call since the person spoke; of one with other arguments, where there is only that."""
        found = [result for result in self.done if result.name == name]
        same = [result for result in found if result.arguments == arguments]
        return next(reversed(same or found), None)


def _results(given: Sequence[Item]) -> Iterator[Result]:
    calls = {item["call_id"]: item for item in given if item.get("type") == "function_call"}
    for item in given:
        call = calls.get(item.get("call_id")) if item.get("type") == "function_call_output" else None
        if call:
            output = FILES.sub("", item["output"], count=1)
            text = CHANGED.sub("", output, count=1)
            failed = FAILED.fullmatch(text)
            code, told = (failed["code"], failed["why"]) if failed else ("", text)
            yield Result(call["name"], _arguments(call), told, code, text != output)


def _files(given: Sequence[Item]) -> tuple[str, ...]:
    for item in reversed(given):
        if item.get("role") == "user" and (paths := ATTACHED.findall("\n".join(_texts(item)))):
            return tuple(paths)
        if item.get("type") == "function_call" and isinstance(path := _arguments(item).get("path"), str):
            return (path,)
    return ()


def _arguments(call: Item) -> dict[str, JSON]:
    """A call's arguments; none where the model that asked for it wrote no JSON object."""
    try:
        arguments = json.loads(call["arguments"])
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _texts(message: Item) -> list[str]:
    content = message["content"]
    return [content] if isinstance(content, str) else [part.get("text", "") for part in content]
