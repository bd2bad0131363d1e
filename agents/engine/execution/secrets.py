"""Secrets of a run in the calls of tools: who may refer to one, and putting in its value where the tool runs."""

from __future__ import annotations

from agents.engine.errors import ToolError
from agents.engine.ledger import JSON
from agents.engine.paths import ancestors
from agents.engine.references import referring, with_values
from agents.engine.runtime.policy import Runtime
from agents.engine.schema import problem
from agents.engine.secrets import references_in
from agents.engine.tools.tool import Tool
from agents.engine.view import View, asked_for

OF_MODEL = "a secret of the run cannot be given here: only the code of its workflow gives it to a tool"
FORGED = "this was written like a secret of the run, and is none: pass on `flow.input` itself"
EDITED = "Nothing ran, because the secrets of this call were edited. They stay as they are: call it again."


def refused_reference(view: View, path: str, payload: dict[str, JSON], given: frozenset[str]) -> str | None:
    """Return why the call at `path` may not refer to secrets of the run, if it does; None if it may.

    Whoever makes it has to have put them there itself, at the keys `given`; and no model asked for it, or for a policy
    that makes it: whoever wrote what the model read could send a secret anywhere.
    """
    above = (view.call(each) for each in ancestors(path) if each)
    if (found := references_in(payload)) and any(call and asked_for(call) for call in above):
        return "; ".join(f"{key}: {OF_MODEL}" for key in sorted(found))
    if forged := sorted(found.keys() - given):
        return "; ".join(f"{key}: {FORGED}" for key in forged)
    return None


def check_edited(asked: dict[str, JSON], edited: dict[str, JSON]) -> None:
    """Raise ToolError for an edited input that refers to other secrets than the call itself."""
    if references_in(asked) != references_in(edited):
        raise ToolError(EDITED, "invalid_input")


def check_secrets(tool: Tool, payload: dict[str, JSON], run: Runtime) -> None:
    """Raise ToolError if a secret that the call needs is gone: then nobody is asked about it."""
    for field in referring(tool.input, payload).values():
        run.services.secret(field)


def put_in(tool: Tool, payload: dict[str, JSON], run: Runtime) -> dict[str, JSON]:
    """Return the input that the tool's function is given, with the values of the secrets.

    Raises ToolError if one is gone, or is none that the tool accepts.
    """
    filled = with_values(payload, tool.input, run.services.secret)
    if filled != payload and (why := problem(tool.input, filled)):
        raise ToolError(why, "invalid_input")
    return filled
