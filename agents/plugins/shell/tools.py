"""The tools that run commands and programs. Every call needs approval, and its card says how far it can reach.

`shell.run` is for pipelines and scripts: a shell reads its text. `shell.program` is for one program: no shell reads its
arguments, so what they do is what they say.
"""

from __future__ import annotations

import os
import shlex
from typing import Annotated

from pydantic import BaseModel, Field, field_validator

from agents.categories import SHELL
from agents.engine.errors import ToolError
from agents.engine.ledger import JSON
from agents.engine.tools.tool import SANDBOXED, TIME_LIMIT_MOST, Risk, ToolCall, tool
from agents.plugins.files.box import parts
from agents.plugins.shell import probe, process
from agents.plugins.shell.granting import too_much
from agents.plugins.shell.limits import SECONDS, SECONDS_MOST

LENGTH_MOST = 30_000
"""Characters of a command, and of all arguments of a program: Linux takes 128 KiB of one argument, and a character has
up to four bytes."""
ARGUMENTS_MOST = 1_000


class Command(BaseModel):
    """The input of `shell.run`."""

    command: str = Field(min_length=1, max_length=LENGTH_MOST, description="The command, as typed into bash.")
    timeout_seconds: int = Field(SECONDS, ge=1, le=SECONDS_MOST, description="Its time limit in seconds.")

    @field_validator("command")
    @classmethod
    def can_be_run(cls, command: str) -> str:
        """Refuse a command that cannot be passed to a program, or is empty."""
        if "\0" in command or not command.strip():
            raise ValueError("a command must not be blank or contain a NUL character")
        return command


class Program(BaseModel):
    """The input of `shell.program`."""

    argv: list[Annotated[str, Field(max_length=LENGTH_MOST)]] = Field(
        min_length=1,
        max_length=ARGUMENTS_MOST,
        title="Program and arguments",
        description="The program, by its name or its path, and then its arguments, each exactly as it is passed.",
    )
    cwd: str = Field(".", min_length=1, title="Folder", description="Where it starts, relative to the workspace.")
    seconds: int = Field(SECONDS, ge=1, le=SECONDS_MOST, description="Its time limit in seconds.")

    @field_validator("argv")
    @classmethod
    def can_be_run(cls, argv: list[str]) -> list[str]:
        """Refuse what cannot be passed to a program, and what names none, or one outside by a path that leads up."""
        program = argv[0]
        if any("\0" in argument for argument in argv):
            raise ValueError("an argument must not contain a NUL character")
        if not program.strip():
            raise ValueError("the first one is the program, and must not be blank")
        if program.startswith("-"):
            raise ValueError("the first one is the program, and must not begin with a dash: give its path, as in ./-x")
        if not program.startswith("/") and ".." in program.split("/"):
            raise ValueError("the path of the program must not contain '..': give one below cwd, or an absolute one")
        if (length := sum(map(len, argv))) > LENGTH_MOST:
            raise ValueError(f"they have {length:,} characters together, of at most {LENGTH_MOST:,}: use a file")
        return argv

    @field_validator("cwd")
    @classmethod
    def is_inside(cls, cwd: str) -> str:
        """Refuse a path that leads out of the workspace. Whether there is such a folder, its start shows."""
        try:
            parts(cwd)
        except ToolError as error:
            raise ValueError(error.message) from error
        return cwd

    @property
    def line(self) -> str:
        """The program and its arguments as one would type them into a shell."""
        return shlex.join(self.argv)


def facts(call: ToolCall[Command]) -> list[str]:
    """Return the facts on the card of this call: how far it reaches, where it runs, and for how long at most."""
    return [_reach("command"), _bounds(call.input.timeout_seconds)]


def program_facts(call: ToolCall[Program]) -> list[str]:
    """Return the facts on the card of this call, as `facts` does."""
    return [_reach("program"), _bounds(call.input.seconds, call.input.cwd)]


def _bounds(seconds: int, folder: str = ".") -> str:
    """Say where it runs, and for how long at most."""
    inside = "/".join(parts(folder))
    where = f"the folder {inside} of this conversation" if inside else "this conversation's folder"
    return f"Runs in {where}, for at most {seconds} seconds."


def _reach(what: str) -> str:
    if probe.sandbox():
        return SANDBOXED
    rights = "the rights of the worker" if os.geteuid() else "all rights on the machine: the worker is root"
    return f"Not sandboxed: the {what} runs with {rights}."


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
    undoable="What a command has done cannot be undone here.",
)
async def run(call: ToolCall[Command]) -> dict[str, JSON]:
    """Run a shell command in the workspace: a pipeline or a script. To run one program, use shell_program.

    It has no terminal or input, and whatever it leaves running is ended.
    """
    asked, services = call.input, call.services
    argv = process.shell(asked.command)
    return await process.run(argv, services.workspace(), services.space(), asked.timeout_seconds, call.draft)


@tool(
    "shell.program",
    risk=Risk.HIGH,
    approval=True,
    idempotent=False,
    category=SHELL,
    time_limit=TIME_LIMIT_MOST,
    grantable=too_much,
    title="Run a program",
    says=lambda asked: f"ran {asked.line}",
    justify=lambda asked: f"Run: {asked.line}",
    facts=program_facts,
    undoable="What a program has done cannot be undone here.",
)
async def run_program(call: ToolCall[Program]) -> dict[str, JSON]:
    """Run one program in the workspace with exactly these arguments. For pipelines and scripts, use shell_run.

    No shell reads them: quotes, $, *, ~, | and > mean nothing. It has no terminal or input, and whatever it leaves
    running is ended.
    """
    asked, services = call.input, call.services
    argv = process.program(asked.argv)
    return await process.run(argv, services.workspace(), services.space(), asked.seconds, call.draft, folder=asked.cwd)
