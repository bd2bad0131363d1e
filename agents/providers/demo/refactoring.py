"""The demo model in a refactoring: it plans one of its small changes, and carries it out, file by file.

Like all of its answers, each depends on the request alone: on the words of the person's request, which name a file, a
wish or the steps of a plan, and on the results so far.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from agents.engine.interfaces.provider import ToolRequest
from agents.engine.ledger import JSON
from agents.providers.demo.form import in_form
from agents.providers.demo.reply import Reply
from agents.providers.demo.rewriting import (
    is_name,
    renamed,
    repeated_value,
    with_constant,
    without_trailing_blanks,
)
from agents.providers.demo.situation import Result, Situation
from agents.providers.demo.wording import describe_result

PLAN = re.compile(r"plan a refactoring of `(?P<path>[^`\n]+)`", re.IGNORECASE)
CARRY_OUT = re.compile(r"carry out this plan for a refactoring of `[^`\n]+`", re.IGNORECASE)
WANTED = re.compile(r"^What is wanted: (?P<goal>.+)$", re.MULTILINE)
STEP = re.compile(r"^\d+\. (?P<step>.+)$", re.MULTILINE)

WORD = r"[`'\"]?(?P<{}>[A-Za-z_]\w*)[`'\"]?"
RENAME = re.compile(rf"\brename {WORD.format('old')} (to|into|as) {WORD.format('new')}", re.IGNORECASE)
EXTRACT = re.compile(
    rf"\b(?i:extract|name|call) `?(?P<value>\S+?)`? ((?i:as|to|into|the constant) )*{WORD.format('name')}"
)

RENAMING = "In `{}`, rename `{}` to `{}`, also in its comments and texts."
NAMING = "In `{}`, give the value `{}` the name `{}`, and define it once at the top."
TRIMMING = "In `{}`, remove blanks at the ends of lines."
CHANGES: dict[str, Callable[..., str | None]] = {
    RENAMING: lambda text, words: renamed(text, *words),
    NAMING: lambda text, words: with_constant(text, *words),
    TRIMMING: lambda text, words: without_trailing_blanks(text),
}
"""What each step does to the text of its file, by its sentence."""
I_KNOW = (
    "I know three small changes only: renaming a word, giving a repeated value of a Python file a name, and removing "
    "blanks at the ends of lines."
)
READ_MOST = 10_000
"""Lines of a file that are read at once: `files.read` has no more."""
CUT = re.compile(r"\n\[(Lines? \d|Not UTF-8)[^\n]*\]\Z")
"""The remark of `files.read` about a text that is not all of a file, or not all text."""


@dataclass(frozen=True)
class Step:
    """A step of a plan: the file that it changes, and how; the change returns None if it cannot be made any more."""

    path: str
    change: Callable[[str], str | None]


def refactoring(situation: Situation) -> Reply | None:
    """Return the answer to a request that plans or carries out a refactoring; None to any other request."""
    if planned := PLAN.match(situation.said):
        return _plan(planned["path"], situation)
    if CARRY_OUT.match(situation.said):
        return _carry_out(situation)
    return None


def _plan(path: str, situation: Situation) -> Reply:
    wanted = WANTED.search(situation.said)
    goal = wanted["goal"] if wanted else ""
    if rename := RENAME.search(goal):
        found: list[list[str]] = []
        for word in (rename["old"], rename["new"]):
            search = {"pattern": rf"\b{word}\b", "regex": True}
            results = [each for each in situation.done if each.arguments.get("pattern") == search["pattern"]]
            if not results:
                return Reply(f"I will look for `{word}`.", (ToolRequest("files_search", search),))
            found.append(_paths_in(results[-1]))
        return _answer(situation, *_renaming(found[0], found[1], rename["old"], rename["new"]))
    if not (read := _result(situation, "files_read", path)):
        return _reading(path)
    return _answer(situation, *_improving(path, read, goal))


def _paths_in(found: Result) -> list[str]:
    """Return the files in which a search found something."""
    return [] if found.code else list(dict.fromkeys(re.findall(r"^(.+?):\d+: ", found.text, re.MULTILINE)))


def _renaming(paths: list[str], taken: list[str], old: str, new: str) -> tuple[str, list[str]]:
    if not paths:
        return f"Nothing is called `{old}` here, so there is nothing to rename.", []
    if taken or not is_name(new):
        has = f"`{taken[0]}` has something called `{new}` already" if taken else ""
        why = has if is_name(new) else f"`{new}` cannot be a name in Python"
        return f"{why}, so I rename nothing.", []
    summary = (
        f"I rename `{old}` to `{new}` in every file that has the word. I do not understand code: read each change."
    )
    return summary, [RENAMING.format(path, old, new) for path in paths]


def _improving(path: str, read: Result, goal: str) -> tuple[str, list[str]]:
    if read.code:
        return f"I could not read `{path}`: {read.text} Name one file: I cannot plan for a folder.", []
    if CUT.search(read.text):
        return f"`{path}` is too long for me, or is not text. I am a demo model.", []
    text = _whole(read)
    if (asked := EXTRACT.search(goal)) and with_constant(text, asked["value"], asked["name"]):
        named: tuple[str, str] | None = asked["value"], asked["name"]
    else:
        named = repeated_value(text)
    if named:
        return f"`{path}` writes `{named[0]}` out where a name would say what it is.", [NAMING.format(path, *named)]
    if without_trailing_blanks(text) != text:
        return f"`{path}` has blanks at the ends of lines.", [TRIMMING.format(path)]
    return f"I found nothing to do in `{path}`. {I_KNOW}", []


def _answer(situation: Situation, summary: str, steps: list[str]) -> Reply:
    """Return the plan, in the form that is wanted, or in words."""
    summary = f"A plan of the demo model, which follows rules. {summary}"
    written = "\n".join([summary, "", *(f"{number}. {step}" for number, step in enumerate(steps, 1))]).strip()
    values: dict[str, JSON] = {"summary": summary, "steps": steps}
    return in_form(situation, "This is my plan.", values) or Reply(written)


def _carry_out(situation: Situation) -> Reply:
    steps = list(_steps(situation.said))
    if not steps:
        return Reply(f"I do not understand the steps of this plan, so I changed nothing. {I_KNOW}")
    told: list[str] = []
    for path in dict.fromkeys(step.path for step in steps):
        if not (read := _result(situation, "files_read", path)):
            return _reading(path)
        if written := _result(situation, "files_write", path):
            told.append(describe_result(written))
            if written.code:
                told.append("I did not go on, because the steps belong together.")
                break
            continue
        changed = None if read.code or CUT.search(read.text) else _changed(_whole(read), path, steps)
        if changed is None:
            told.append(f"I changed nothing in `{path}`: it is not as it was when I planned.")
            continue
        write = ToolRequest("files_write", {"path": path, "content": changed})
        return Reply(f"I will change `{path}`, as the plan says.", (write,))
    return Reply(
        "\n\n".join([*told, "I am a demo model and do not understand code: read the changes, and run the tests."])
    )


def _steps(said: str) -> Iterator[Step]:
    for found in STEP.finditer(said):
        for sentence, change in CHANGES.items():
            if words := _words_of(sentence, found["step"]):
                yield Step(words[0], partial(change, words=words[1:]))


def _words_of(sentence: str, step: str) -> tuple[str, ...]:
    """Return what stands between backticks in a step of this form; nothing if it has another form."""
    found = re.fullmatch(re.escape(sentence).replace(r"\{\}", "([^`]+)"), step)
    return found.groups() if found else ()


def _changed(text: str, path: str, steps: list[Step]) -> str | None:
    """Return the text of this file after all the steps about it; None if nothing changes, or a step cannot be done."""
    after: str | None = text
    for step in steps:
        after = step.change(after) if after is not None and step.path == path else after
    return None if after == text else after


def _result(situation: Situation, name: str, path: str) -> Result | None:
    """Return the last result of this tool for this file."""
    found = [result for result in situation.done if result.name == name and result.arguments.get("path") == path]
    return found[-1] if found else None


def _reading(path: str) -> Reply:
    return Reply(f"I will read `{path}`.", (ToolRequest("files_read", {"path": path, "limit": READ_MOST}),))


def _whole(read: Result) -> str:
    """Return the text of a file as it was read, with the newline at its end."""
    return f"{read.text}\n"
