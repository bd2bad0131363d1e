"""The demo model's help: what it says about itself, and about the requests that it understands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import quote

from agents.engine.ledger import JSON
from agents.engine.tools.tool import wire_name
from agents.providers.demo.samples import sample
from agents.providers.demo.sentences import SENTENCE_OF
from agents.providers.demo.showing import SHOWN
from agents.providers.demo.situation import Situation

INTRODUCTION = "I am the demo model: a small program that follows rules, not a language model."
CHOOSE = "Choose one to put it into the message field:"

TOUR = {
    "files.list": "",
    "files.write": "you see the change, and approve it, before it is made",
    "files.read": "",
    "files.edit": "you see what changes, line by line",
    "files.search": "",
    "shell.run": "commands wait for your approval, too",
    "shell.program": "you see each argument apart",
    "chart.show": "",
    "table.show": "",
    "report.write": "you get a file to download",
    "blueprints.propose": "an administrator reads it, and enables it for all",
    "trigger.create": "its turn starts by itself, without a message",
    "memory.save": "you approve it, and I am told of it in your next conversations",
    "memory.search": "",
    "csv.summary": "attach a file of this name first",
}
"""What the help shows of the tools that ship, each with a remark, in an order in which a newcomer can try it. A tool
that is not here is used along the way, and nobody has to ask for it.
"""

GREETING = re.compile(
    r"(hello|hi|hey|good (morning|day|evening))?\W*+(help( me)?|what (can|do) you (do|know|understand)( here)?"
    r"|(who|what) are you)?\W*",
    re.IGNORECASE,
)


def guide(situation: Situation) -> str:
    """Return the help: examples for what is offered. On a page, each is a link that puts it into the message field."""
    examples = "\n".join(f"- {example}" for example in _examples(situation.offered))
    if not situation.offered:
        return f"{INTRODUCTION} No tools are available here, so there is little I can do. {CHOOSE}\n\n{examples}"
    if situation.files and not situation.said:
        named = " and ".join(f"`{path}`" for path in situation.files)
        example = _linked(f"read {situation.files[0]}")
        return f"{INTRODUCTION} You gave me {named}. Tell me what to do, for example {example}."
    if GREETING.fullmatch(situation.said):
        join = "You can combine requests with “and” or “then”."
        return f"{INTRODUCTION} I understand requests such as these. {CHOOSE}\n\n{examples}\n\n{join}"
    return f"{INTRODUCTION} I did not understand that. I understand requests such as these. {CHOOSE}\n\n{examples}"


def _examples(offered: dict[str, JSON]) -> Iterator[str]:
    """Yield an example for each tool of the tour, each text that can be shown, and each tool of this site's apps."""
    for tool, remark in TOUR.items():
        sentence = SENTENCE_OF[wire_name(tool)]
        if sentence.name in offered or (sentence.skill and "skills_activate" in offered):
            yield _linked(sentence.example) + (f" ({remark})" if remark else "")
    for each in SHOWN:
        yield f"{_linked(each.example)} ({each.remark})"
    for name, schema in offered.items():
        if name not in SENTENCE_OF:
            arguments = sample(schema["parameters"])
            with_ = f" with {json.dumps(arguments, ensure_ascii=False)}" if arguments else ""
            yield _linked(f"use {name}{with_}")


def _linked(request: str) -> str:
    """Return a request as a link to the page it is read on, which puts it into the message field there."""
    return f"[`{request}`](?message={quote(request, safe='')})"
