"""Answers in the form that is wanted: the call with which the demo model gives one."""

from __future__ import annotations

from agents.engine.interfaces.provider import FINAL_ANSWER, ToolRequest
from agents.engine.ledger import JSON
from agents.providers.demo.reply import Reply
from agents.providers.demo.samples import sample
from agents.providers.demo.situation import Situation


def in_form(situation: Situation, words: str, values: dict[str, JSON]) -> Reply | None:
    """Return an answer with these values, and `words` beside it; None if no form is wanted.

    Of the values those are given that the form has; what else it requires is made up.
    """
    final = situation.offered.get(FINAL_ANSWER)
    if final is None:
        return None
    known = final["parameters"].get("properties", {})
    form = sample(final["parameters"]) | {name: value for name, value in values.items() if name in known}
    return Reply(words, (ToolRequest(FINAL_ANSWER, form),))
