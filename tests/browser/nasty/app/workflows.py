"""Workflows whose input, progress, question, result and error are what they are given."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agents import ToolError
from agents.categories import PROJECTS
from tests.texts import TEXTS, short
from workflows import Flow, workflow

TITLE = f'Ask "<b>in</b>" {short(TEXTS["zero-width"], 30)} {short(TEXTS["bidi"], 60)}'


class Words(BaseModel):
    text: str
    texts: list[str] = []


@workflow("nasty.ask", title=TITLE, category=PROJECTS)
async def ask(flow: Flow[Words]) -> dict[str, Any]:
    """Tells its progress, asks, and returns what it was given."""
    text = flow.input.text
    flow.progress(1, 2, short(text, 200))
    answer = await flow.ask(short(text, 2_000), choices=[f"1 {short(text)}", "2"])
    return {text: text, "texts": flow.input.texts, "answer": answer}


@workflow("nasty.return", title="Return these words", category=PROJECTS)
async def give_back(flow: Flow[Words]) -> dict[str, Any]:
    """Returns what it was given."""
    return {flow.input.text: flow.input.text, "texts": flow.input.texts}


@workflow("nasty.fail", title="Fail with these words", category=PROJECTS)
async def fail(flow: Flow[Words]) -> None:
    """Fails, and says why."""
    raise ToolError(flow.input.text, "nasty")
