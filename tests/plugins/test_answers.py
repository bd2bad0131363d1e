"""The plugin that tells an agent what the page shows of its answers."""

from __future__ import annotations

from typing import Any

from agents import discovery
from agents.engine.agent.final_answer import answer_by_schema
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.view import View
from agents.plugins.answers.plugin import TEXT, Answers
from tests.engine.support import Site


async def prepared(path: str, **more: Any) -> Round:
    """A round at this path, once the plugin and another one have prepared it."""

    class Other(Plugin):
        name = "other"

        async def prepare(self, round: Round) -> None:
            round.context.append("What another plugin adds.")

    round = Round(1, path, input="Hi", base="You help.", tools=(), view=View(), services=Site(), **more)
    await round.prepare([Answers(), Other()])
    return round


async def test_an_agent_whose_answer_people_read_is_told() -> None:
    """After the system prompt, and the same in every round."""
    first, second = await prepared("1"), await prepared("2")
    assert first.system == second.system == f"You help.\n\n{TEXT}\n\nWhat another plugin adds."
    assert [name for name, _ in first.parts] == ["base", "answers", "other"]


async def test_an_agent_within_another_is_not_told() -> None:
    """Its answer goes to whoever called it."""
    assert TEXT not in (await prepared("2/1/1")).system


async def test_an_agent_whose_answer_has_a_form_is_not_told() -> None:
    """It is shown as it is."""
    assert TEXT not in (await prepared("1", final=answer_by_schema({"type": "object"}))).system


def test_every_agent_of_a_site_has_it_and_it_prepares_first() -> None:
    assert discovery.installed().plugins[0] is Answers


def test_it_is_short_and_says_what_there_is() -> None:
    """At most 200 tokens, by the estimate of the site."""
    assert len(TEXT.encode()) / 4 < 200
    told = ("task lists", "footnotes", "`mermaid`", "quote labels", "%%{init}%%", "$$...$$", "![words]")
    assert [words for words in told if words not in TEXT] == []
