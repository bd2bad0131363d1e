"""Reports: a Markdown file that is attached to the run, and written into the workspace if a person approves."""

from __future__ import annotations

from typing import Any

from agents.engine.decisions import Decision
from agents.engine.errors import ToolError
from workflows.flow import Flow

MEDIA_TYPE = "text/markdown"
STOPPED = (Decision.CANCELLED, Decision.EXPIRED, "timeout", "not_permitted")
"""Codes of errors that end the run, whatever they are about."""


async def deliver(flow: Flow[Any], path: str, text: str, summary: str) -> str:
    """Attach a report to the run, write it to this path, and return what became of it there, in a sentence.

    What keeps it out of the workspace, such as a person who rejects it or a full disk, does not lose it.
    """
    await flow.file(path.rpartition("/")[2], text.encode(), media_type=MEDIA_TYPE, summary=summary)
    try:
        written: str = await flow.tool("files.write", path=path, content=text)
    except ToolError as error:
        if error.code in STOPPED:
            raise
        if error.code == Decision.IT_RAN:  # a person said so after a crash
            return f"{path} was written."
        if error.code == "unchanged":
            return f"{path} has exactly this text already."
        return f"{error.message} It is attached to this run, and was not written into the workspace."
    return written


def code(text: str) -> str:
    """Return this text as code in Markdown, on one line, whatever stands in it."""
    line = " ".join(text.split()) or " "
    fence = "`"
    while fence in line:
        fence += "`"
    return f"{fence}{line}{fence}" if fence == "`" else f"{fence} {line} {fence}"


def quoted(text: str) -> str:
    """Return this text as a quotation in Markdown, in which nothing is a heading, a link or a tag."""
    return "\n".join(f">     {line}" for line in text.splitlines() or [""])
