"""Whoever adds a tool to the project adds its sentence to the demo model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, TypeVar

import pytest
from channels.db import database_sync_to_async

from agents.discovery import installed
from agents.engine.interfaces.services import PlainServices
from agents.engine.tools.plugin import Round
from agents.engine.tools.tool import Tool, wire_name
from agents.engine.view import View
from agents.providers.demo.rules import answer
from agents.providers.demo.sentences import SENTENCES, Sentence
from agents.skills import SHIPPED, read_skill, skill_files

T = TypeVar("T")
SENTENCE_OF = {sentence.tool: sentence for sentence in SENTENCES}
HERE = "agents/providers/demo/sentences.py"


class Services(PlainServices):
    """With a database, which a plugin may look into."""

    async def look_up(self, function: Callable[..., T], *args: Any) -> T:
        found: T = await database_sync_to_async(function)(*args)
        return found


async def pushed(tools: Iterable[Tool]) -> AsyncIterator[Tool]:
    """The tools that the shipped plugins bring along only when a round begins."""
    known = list(tools)
    for plugin in installed().plugins:
        round = Round(1, "1", input="help", base="", tools=known, view=View(), services=Services())
        await round.prepare([plugin()])
        for tool in round.tools:
            if tool not in known:
                yield tool


@pytest.mark.django_db(transaction=True)
async def test_every_tool_that_ships_has_a_sentence_that_drives_it() -> None:
    """The example in the help, said to the demo, calls that very tool, with arguments that its input accepts.

    Tools that no model is ever offered need none: only workflows call them.
    """
    brought = [tool async for tool in pushed(installed().tools)]
    tools = [*(tool for tool in installed().tools if tool.offered), *brought]
    assert len(tools) > 5
    for tool in tools:
        assert tool.name in SENTENCE_OF, f"{tool.name} has no sentence: add one to SENTENCES in {HERE}"
        check(tool, SENTENCE_OF[tool.name])
    left = SENTENCE_OF.keys() - {tool.name for tool in tools}
    assert not left, f"no tool is called {left}: take the sentence out of {HERE}, or mend its name"


def check(tool: Tool, sentence: Sentence) -> None:
    """Say the sentence, with its tool offered, until the call comes: some requests look something up first."""
    offered = [{"type": "function", "name": wire_name(tool.name), "parameters": tool.schema}]
    (call,) = answer({"model": "m", "input": sentence.example, "tools": offered}).calls
    assert call.name == wire_name(tool.name), f"{sentence.example!r} calls {call.name}: see {tool.name} in {HERE}"
    assert isinstance(call.arguments, dict)
    assert tool.problem(call.arguments) is None, f"{tool.name} refuses {call.arguments}: see {HERE}"


def test_a_skills_tool_names_the_skill_that_brings_it() -> None:
    """So that the demo can take it up first."""
    shipped = [read_skill(file, SHIPPED) for file in skill_files(SHIPPED)]
    brought = {tool: skill.name for skill in shipped for tool in skill.tools}
    assert brought
    assert {sentence.tool: sentence.skill for sentence in SENTENCES if sentence.skill} == brought
