"""Tools that return, emit, ask and raise what they are given."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents import Risk, ToolCall, ToolError, tool


class Given(BaseModel):
    text: str


class Named(BaseModel):
    """What is to be done, with fields of every shape."""

    text: str = Field(description="Any text.")
    texts: list[str] = []
    by_text: dict[str, str] = {}


@tool("nasty.echo", risk=Risk.READ, title="Echo", says=lambda given: f"echoed {given.text}")
def echo(call: ToolCall[Given]) -> str:
    """Say the same again."""
    return call.input.text


@tool("nasty.fail", risk=Risk.READ, title="Fail")
def fail(call: ToolCall[Given]) -> str:
    """Fail with this text."""
    raise ToolError(call.input.text, "nasty")


@tool("nasty.change", risk=Risk.DESTRUCTIVE, title="Change it")
def change(call: ToolCall[Named]) -> dict[str, str]:
    """Change what is named so."""
    return {call.input.text: call.input.text}
