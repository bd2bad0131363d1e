"""The assignment of an agent: what it is told, the tools it may use, its budget, and the form of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.engine.agent.final_answer import answer_by_model, answer_by_schema
from agents.engine.errors import ToolError
from agents.engine.interfaces.attached import Attachment, Quote
from agents.engine.ledger import JSON
from agents.engine.limits import Limits
from agents.engine.root import AGENT, site_of, system_of
from agents.engine.runtime.policy import Context, Runtime
from agents.engine.tools.tool import Tool
from agents.engine.view import asked_for


@dataclass(frozen=True)
class Assignment:
    """What an agent is to do. `told`: its payload, with what the site says of a turn that it is the root of.

    `tools` are those that it has from the beginning; `only`, if it is not None, the names of all that it may be
    offered. `final`: the tool by which it gives its answer, if that has a form. `files` and `quotes` came with the
    message. `system`: the site's system text, if it has one for this turn.
    """

    told: dict[str, Any]
    limits: Limits
    tools: tuple[Tool, ...]
    only: frozenset[str] | None = None
    final: Tool | None = None
    files: Sequence[Attachment] = ()
    quotes: Sequence[Quote] = ()
    system: str = ""

    @classmethod
    def of(cls, ctx: Context, own: Sequence[Tool], budget: dict[str, Any]) -> Assignment:
        """Return the assignment of the agent that is called with this context, and has these tools and this budget.

        One that another policy calls may be given `tools`, `rounds` and `output` in its payload, and is of the tier of
        the turn. Whoever else calls one, a model or whoever starts a turn of it, gives only its text. Raises ToolError
        for what is none of these.
        """
        run, payload = ctx.run, ctx.action.payload
        root, call = run.view.call(""), run.view.call(ctx.path)
        site: dict[str, Any] = site_of(root) if root else {}
        by_program = bool(ctx.path) and call is not None and not asked_for(call)
        if not by_program and ctx.action.policy != AGENT:
            payload = {"text": payload.get("text")}
        if not isinstance(payload.get("text"), str | None):
            raise ToolError(f"The `text` for an agent is a text, not {payload['text']!r}.", "invalid_input")
        if not ctx.path:
            told = payload | site | ({"text": None} if site.get("continues") else {})  # it was said in that turn
            form, system = told.get("form"), system_of(root) if root else None
            return cls(
                told,
                run.granted,
                tuple(own),
                final=answer_by_schema(form["schema"], form.get("description", "")) if form else None,
                files=Attachment.recorded_in(told),
                quotes=told.get("quotes", ()),
                system=system["text"] if system else "",
            )
        tier = site.get("tier")
        told = ({"tier": tier} if isinstance(tier, str) else {}) | payload
        limits = replace(run.limits, **budget)
        if (rounds := payload.get("rounds")) is not None:  # the turn's own purse may be larger than the site's limit
            most = budget.get("rounds", run.granted.rounds)
            limits = replace(limits, rounds=min(most, _checked_rounds(rounds)))
        tools, only = tuple(own), None
        if (names := payload.get("tools")) is not None:
            only = _checked_names(names)
            tools = _named(only, own, run)
        if (output := payload.get("output")) is None:
            return cls(told, limits, tools, only)
        if not isinstance(output, type):
            raise ToolError("The `output` of an agent is a pydantic model.", "invalid_input")
        return cls(told, limits, tools, only, final=answer_by_model(output))


def _checked_rounds(rounds: JSON) -> int:
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise ToolError(f"The `rounds` of an agent are a whole number from 1 on, not {rounds!r}.", "invalid_input")
    return rounds


def _checked_names(names: JSON) -> frozenset[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ToolError(f"The `tools` of an agent are a list of names, not {names!r}.", "invalid_input")
    return frozenset(names)


def _named(names: frozenset[str], own: Sequence[Tool], run: Runtime) -> tuple[Tool, ...]:
    """Return the tools with these names, the agent's own or any that is registered. Plugins may push the others."""
    known = {tool.name: tool for tool in own}
    for name in names - known.keys():
        if tool := registered_tool(run, name):
            known[name] = tool
    return tuple(known[name] for name in sorted(names & known.keys()))


def registered_tool(run: Runtime, name: str) -> Tool | None:
    """Return the registered tool of this name, or None."""
    found = run.registered(name)
    tool = getattr(found.policy, "tool", None) if found else None
    return tool if isinstance(tool, Tool) else None
