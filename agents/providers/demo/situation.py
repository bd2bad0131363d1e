"""The situation that the demo model answers in. It is read from the request alone; nothing is remembered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.engine.agent.projection import GO_ON, NOBODY_SPOKE, TRIGGERED
from agents.engine.interfaces.attached import QUOTED
from agents.engine.ledger import JSON
from agents.providers.common.values import as_text, parse_arguments

Item = dict[str, JSON]

SITE_LINES = (GO_ON, NOBODY_SPOKE)
"""The lines of the engine in turns in which no person said anything; some servers are sent them as user messages."""

REMINDER = re.compile(re.escape(TRIGGERED).replace(re.escape("{says}"), r"(?P<says>\"(?:[^\"\\]|\\.)*\")"))
"""The engine's line in a turn that a trigger started, with what that says as JSON."""

ATTACHED = re.compile(r"^\[Attached: .+ It lies in the workspace as (?P<path>.+)\.\]$", re.MULTILINE)
"""The note below a message for each file attached to it (agents.engine.interfaces.attached)."""

CHANGED = re.compile(r"\A\[A person changed[^\n]*\]\n\n")
"""The note above the result of a call whose input a person edited (agents.engine.agent.projection)."""

WITH_FILES = ("user", "developer", "system")
"""The roles of messages that name files: a person's, and the site's line about what came with a webhook."""

FILES = re.compile(r"(\n\n\[file [^\n]+)+\Z")
"""The notes below a result about the files that its call made (agents.engine.agent.projection)."""

FAILED = re.compile(r"Error \((?P<code>\w+)\): (?P<why>.*)", re.DOTALL)


@dataclass(frozen=True)
class Result:
    """A call and its result.

    `name` is the tool's wire name, `arguments` what it ran with, `changed` whether a person edited them. `code` is
    empty unless the call failed; then `text` says why.
    """

    name: str
    arguments: dict[str, JSON]
    text: str
    code: str = ""
    changed: bool = False


@dataclass(frozen=True)
class Situation:
    """What was said last, the tools offered by wire name, and the results of the calls made since then.

    `files` are the paths that "it" may stand for: those of the attached files, else the file that was used last.
    `first`: this is the first answer of the conversation. `unasked`: nobody asked for anything in this turn; what was
    said and done before it does not count. `reminder`: a trigger started the turn, and what it says counts as said.
    """

    said: str
    offered: dict[str, JSON]
    done: tuple[Result, ...]
    files: tuple[str, ...]
    first: bool
    unasked: bool = False
    reminder: bool = False

    @classmethod
    def of(cls, body: dict[str, JSON]) -> Situation:
        """Return the situation of a request, given its body in the shape of the Responses API."""
        given, offered = items(body), {tool["name"]: tool for tool in body.get("tools") or ()}
        first = not any(item.get("role") == "assistant" or item.get("type") == "function_call" for item in given)
        if found := _reminder(given):
            says, done = found
            return cls(says, offered, tuple(_results(done)), _files(given), first, reminder=True)
        if _nobody_spoke(given):
            return cls("", offered, (), (), first, unasked=True)
        last = max((index for index, item in enumerate(given) if is_from_person(item)), default=len(given))
        said = "\n".join(texts_of(given[last]["content"])) if last < len(given) else ""
        return cls(
            said=ATTACHED.sub("", said.partition(QUOTED)[0]).strip(),
            offered=offered,
            done=tuple(_results(given[last:])),
            files=_files(given[: last + 1]),
            first=first,
        )

    def result_of(self, name: str, arguments: JSON) -> Result | None:
        """Return the last result of this call since the person's message; failing that, of one with other arguments."""
        found = [result for result in self.done if result.name == name]
        same = [result for result in found if result.arguments == arguments]
        return next(reversed(same or found), None)


def items(body: Item) -> list[Item]:
    """Return a request's input items. An input that is only text counts as one user message."""
    given = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def is_from_person(item: Item) -> bool:
    """Return whether the item is a user message that a person wrote, and not the engine."""
    line = text_of(item) if item.get("role") == "user" else ""
    return item.get("role") == "user" and line not in SITE_LINES and not REMINDER.match(line)


def text_of(message: Item) -> str:
    """Return a message's text, without the notes about attached files that may follow it."""
    return next(iter(texts_of(message["content"])), "")


def texts_of(content: JSON) -> list[str]:
    """Return the texts of a content, or of an output, in the shape of either API: a text or a list of parts."""
    return [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]


def _nobody_spoke(given: Sequence[Item]) -> bool:
    """Return whether the turn began without a message: by the site's own line, or by one in the place of a user's."""
    if any(text_of(item).endswith(NOBODY_SPOKE) for item in given if item.get("role") in ("developer", "system")):
        return True
    return next((text_of(item) == NOBODY_SPOKE for item in reversed(given) if item.get("role") == "user"), False)


def _reminder(given: Sequence[Item]) -> tuple[str, Sequence[Item]] | None:
    """Return what the trigger says that started this turn, and the turn's items so far; None if none started it.

    The line is the last item, or ends the first, the system's; or it stands where a person's message would. In the
    middle it is an earlier turn's.
    """
    by_user = [at for at, item in enumerate(given) if item.get("role") == "user"]
    last, places = len(given) - 1, (("developer", -1), ("system", 0))
    for role, at in places:
        if given and given[at].get("role") == role and (line := REMINDER.search(text_of(given[at]))):
            return json.loads(line["says"]), given[_begins(given[: last if at else None]) :]
    if by_user and (line := REMINDER.search(text_of(given[by_user[-1]]))):
        return json.loads(line["says"]), given[by_user[-1] + 1 :]
    return None


def _begins(given: Sequence[Item]) -> int:
    """Return where the turn begins whose line is no item of the history: after the last answer without a call."""
    for at in range(len(given), 0, -1):
        followed = at < len(given) and given[at].get("type") == "function_call"
        if given[at - 1].get("role") == "assistant" and not followed:
            return at
    return 0


def _results(given: Sequence[Item]) -> Iterator[Result]:
    calls = {item["call_id"]: item for item in given if item.get("type") == "function_call"}
    for item in given:
        call = calls.get(item.get("call_id")) if item.get("type") == "function_call_output" else None
        if call:
            output = FILES.sub("", "\n\n".join(texts_of(item["output"])), count=1)
            text = CHANGED.sub("", output, count=1)
            failed = FAILED.fullmatch(text)
            code, shown = (failed["code"], failed["why"]) if failed else ("", text)
            arguments, _ = parse_arguments(call["arguments"])
            yield Result(call["name"], arguments, shown, code, text != output)


def _files(given: Sequence[Item]) -> tuple[str, ...]:
    for item in reversed(given):
        if item.get("role") in WITH_FILES and (paths := ATTACHED.findall("\n".join(texts_of(item["content"])))):
            return tuple(paths)
        if item.get("type") == "function_call":
            arguments, _ = parse_arguments(item["arguments"])
            if path := as_text(arguments.get("path")):
                return (path,)
    return ()
