"""The tool that runs commands. Every call needs approval, and its card says how far the command can reach."""

from __future__ import annotations

import os

from pydantic import BaseModel, Field, field_validator

from agents.categories import SHELL
from agents.engine.ledger import JSON
from agents.engine.tools.tool import SANDBOXED, TIME_LIMIT_MOST, Risk, ToolCall, tool
from agents.plugins.shell import probe, process
from agents.plugins.shell.limits import SECONDS, SECONDS_MOST


class Command(BaseModel):
    """The input of `shell.run`. Linux takes a command of at most 128 KiB, and a character has up to four bytes."""

    command: str = Field(min_length=1, max_length=30_000, description="The command, as typed into bash.")
    timeout_seconds: int = Field(SECONDS, ge=1, le=SECONDS_MOST, description="Its time limit in seconds.")

    @field_validator("command")
    @classmethod
    def can_be_run(cls, command: str) -> str:
        """Refuse a command that cannot be passed to a program, or is empty."""
        if "\0" in command or not command.strip():
            raise ValueError("a command must not be blank or contain a NUL character")
        return command


def facts(call: ToolCall[Command]) -> list[str]:
    """Return the facts on the card of this call: how far it reaches, where it runs, and for how long at most."""
    return [_reach(), f"Runs in this conversation's folder, for at most {call.input.timeout_seconds} seconds."]


def _reach() -> str:
    if probe.sandbox():
        return SANDBOXED
    rights = "the rights of the worker" if os.geteuid() else "all rights on the machine: the worker is root"
    return f"Not sandboxed: the command runs with {rights}."


@tool(
    "shell.run",
    risk=Risk.HIGH,
    approval=True,
    idempotent=False,
    category=SHELL,
    time_limit=TIME_LIMIT_MOST,
    title="Run a command",
    says=lambda asked: f"ran {asked.command}",
    facts=facts,
)
async def run(call: ToolCall[Command]) -> dict[str, JSON]:
    """Run a shell command in the workspace. It has no terminal or input, and whatever it leaves running is ended."""
    asked = call.input
    services = call.services
    return await process.run(asked.command, services.workspace(), services.space(), asked.timeout_seconds, call.draft)
