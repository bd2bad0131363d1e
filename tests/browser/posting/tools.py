"""A tool whose input is chosen from lists."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from agents import Risk, ToolCall, tool

Who = Literal["Ann", "Ben", "Cleo", "Dora", "Emil", "Fay"]


class Letter(BaseModel):
    """To whom a letter goes, and how."""

    to: list[Who]
    sender: Who
    urgent: bool = False


@tool("letter.post", risk=Risk.WRITE, approval=True, title="Post a letter")
def post(call: ToolCall[Letter]) -> str:
    """Post a letter."""
    return f"Posted to {', '.join(call.input.to)}."
