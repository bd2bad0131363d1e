"""Tools whose effects can be counted: each adds a line, the call's path, to the file that CRASH_EFFECTS names."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from agents import Risk, ToolCall, tool
from tests.crash.app import writing

if _place := os.environ.get("CRASH_WRITE"):
    writing.arm(_place)


class Name(BaseModel):
    """Changes from version to version of the app."""

    name: str = Field(description=f"In version {os.environ.get('CRASH_APP_VERSION', '1')} of the app.")


class Number(BaseModel):
    a: int


class Seconds(BaseModel):
    seconds: float


def _count(call: ToolCall[Any], what: str = "") -> None:
    with Path(os.environ["CRASH_EFFECTS"]).open("a") as effects:
        effects.write(f"{call.path}{what}\n")
    if keys := os.environ.get("CRASH_KEYS"):
        with Path(keys).open("a") as done:
            done.write(f"{call.key}{what}\n")


async def _slowly(call: ToolCall[Seconds]) -> str:
    _count(call, " began")
    await asyncio.sleep(call.input.seconds)
    _count(call, " ended")
    return "slept"


@tool("fx.count", risk=Risk.HIGH, justify=lambda asked: f"Count {asked.name}")
async def count(call: ToolCall[Name]) -> str:
    """Do what must not be done twice."""
    _count(call)
    return f"counted {call.input.name}"


@tool("fx.note", risk=Risk.WRITE, idempotent=False)
async def note(call: ToolCall[Name]) -> str:
    """Do what must not be done twice, and may be granted."""
    _count(call)
    return f"noted {call.input.name}"


@tool("fx.once", risk=Risk.WRITE, approval=False)
async def once(call: ToolCall[Name]) -> str:
    """Do what must not be done twice, without asking, and hand over a file."""
    _count(call)
    call.file("once.txt", b"once", media_type="text/plain", summary="Once.")
    return f"did {call.input.name}"


@tool("fx.write", risk=Risk.WRITE, approval=False, idempotent=True)
async def write(call: ToolCall[Name]) -> str:
    """Do what comes to the same however often it is done."""
    _count(call)
    return f"wrote {call.input.name}"


@tool("fx.read", risk=Risk.READ)
async def read(call: ToolCall[Number]) -> str:
    """Read."""
    _count(call)
    return f"read {call.input.a}"


@tool("fx.slow", risk=Risk.WRITE, approval=False)
async def slow(call: ToolCall[Seconds]) -> str:
    """Take long, and tell of the beginning and the end."""
    return await _slowly(call)


@tool("fx.look", risk=Risk.READ)
async def look(call: ToolCall[Seconds]) -> str:
    """Take long to read."""
    return await _slowly(call)


@tool("fx.again", risk=Risk.WRITE, approval=False, idempotent=True)
async def again(call: ToolCall[Seconds]) -> str:
    """Take long over what comes to the same however often it is done."""
    return await _slowly(call)


@tool("fx.hang", risk=Risk.WRITE, approval=False)
async def hang(call: ToolCall[Seconds]) -> str:
    """Hold up the whole process."""
    _count(call, " began")
    time.sleep(call.input.seconds)  # noqa: ASYNC251 - that is what it is for
    return "hung"


@tool("fx.crash", risk=Risk.READ)
async def crash(call: ToolCall[Name]) -> str:
    """Take the process down, each time."""
    _count(call)
    os.kill(os.getpid(), 9)
    return "unreachable"
