"""Grants in words: what a person reads before they give one, and wherever it is listed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from agents.discovery import installed_tool
from agents.engine.grants.conditions import Condition, Operator
from agents.engine.grants.grant import Grant, Scope
from agents.engine.grants.words import place_words, value_words
from agents.engine.root import AGENT
from conversations.display.call import title_of
from conversations.display.when import at

SENTENCE_MOST = 3
"""Conditions that one sentence can say; more are listed, each in a line."""

OPERATORS: dict[Operator, str] = {
    Operator.IS: "is",
    Operator.ANY: "may be anything",
    Operator.STARTS_WITH: "starts with",
    Operator.ENDS_WITH: "ends with",
    Operator.IN: "is one of",
    Operator.MATCHES: "matches the pattern",
    Operator.AT_MOST: "is at most",
    Operator.AT_LEAST: "is at least",
}
"""Operators in a sentence, in the order in which a form offers them."""


def grant_words(grant: Grant, giver: str = "", place: str = "this conversation") -> list[str]:
    """Return what a grant allows, in sentences: what runs, where and how long, and who may ask for it.

    `giver`: the name of whoever gave it; "" if they read this. `place`: what the conversation is called to which it is
    bound.
    """
    runs = f"{title_of(grant.tool)}, without asking {giver or 'you'}, if"
    said = [*_which(grant, runs), _bounds(grant, giver, place)]
    if askers := _askers(grant.callers):
        said.append(f"Only when {askers} asks for it.")
    if grant.unattended:
        said.append("Also when nobody is there: in turns that the system starts.")
    return said


def _which(grant: Grant, runs: str) -> list[str]:
    """Return in sentences which calls it covers; `runs` says what runs, up to the condition."""
    if grant.scope is Scope.EXACT:
        return [f"{runs} it is exactly this call."]
    tool = installed_tool(grant.tool)
    said = [_condition(each, tool.preview if tool else "") for each in grant.conditions]
    if len(said) <= SENTENCE_MOST:
        return [f"{runs} {_listed(said)}."]
    return [f"{runs} all of this holds:", *(f"• {each}" for each in said)]


def _condition(said: Condition, preview: str) -> str:
    place, operator = place_words(said.field, preview), OPERATORS[said.operator]
    if said.operator is Operator.ANY:
        return f"{place} {operator}"
    if said.operator is Operator.IN and isinstance(said.value, list):
        return f"{place} {operator} {_listed([value_words(each) for each in said.value], 'or')}"
    return f"{place} {operator} {value_words(said.value)}"


def _bounds(grant: Grant, giver: str, place: str) -> str:
    everywhere = f"In all conversations of {giver}" if giver else "In all your conversations"
    where = everywhere if grant.conversation is None else f"In {place} only"
    return f"{where}, {_times(grant.uses)}, {_until(grant.until, giver)}."


def _times(most: int | None) -> str:
    if most is None:
        return "any number of times"
    return "once" if most == 1 else f"at most {most:,} times"


def _until(until: datetime | None, giver: str) -> str:
    if until is None:
        return f"until {giver} revokes it" if giver else "until you revoke it"
    return f"until {at(until).removeprefix('at ').removeprefix('on ')}"


def _askers(callers: Sequence[str]) -> str:
    """Return who asks, unless it is the turn's own agent: the chain of programs and agents that lead to the call."""
    named = [f"“{title_of(name)}”" for name in callers if name != AGENT]
    return " for ".join(reversed(named))


def _listed(words: Sequence[str], last: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
