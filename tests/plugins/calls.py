"""A conversation's folder for tests, and calls of tools in it."""

import asyncio
import inspect
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agents.engine.errors import ToolError
from agents.engine.interfaces.services import PlainServices, Space
from agents.engine.tools.tool import Tool, ToolCall

SECRET = "outside-9f2c"  # in a file beside the workspaces; whoever reads it has got out


@dataclass
class Services(PlainServices):
    """A conversation with a folder; what is on its way is kept."""

    folder: Path = Path()
    drafts: list[str] = field(default_factory=list)
    most: Space = field(default_factory=Space)

    def workspace(self) -> Path:
        return self.folder

    def space(self) -> Space:
        return self.most

    def draft(self, path: str, text: str, attempt: int = 1) -> None:
        self.drafts.append(text)


@dataclass
class Desk:
    """A workspace, the folder beside it that nothing may reach, and what was shown."""

    workspace: Path
    outside: Path
    services: Services

    async def call(self, tool: Tool, **payload: Any) -> Any:
        """The result of one call with this input."""
        assert tool.problem(payload) is None
        call = ToolCall(tool.name, tool.input.model_validate(payload), user=1, services=self.services, path="1/0")
        result = tool.function(call)
        return await result if inspect.isawaitable(result) else result

    async def refused(self, tool: Tool, **payload: Any) -> ToolError:
        """The error of a call that must fail; it says nothing of what lies outside."""
        with pytest.raises(ToolError) as caught:
            await self.call(tool, **payload)
        assert SECRET not in str(caught.value)
        return caught.value


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Wait for it, and fail where it does not come."""
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, f"not within {seconds} seconds"
        time.sleep(0.01)


async def soon(condition: Callable[[], object], seconds: float = 20) -> None:
    """See until(); others go on meanwhile."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.01)


def descriptors() -> int:
    """How many this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def running(mark: str) -> list[int]:
    """The ids of the live processes with this word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
                dead = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
            except OSError:
                continue
            if mark.encode() in words and not dead:
                found.append(int(entry.name))
    return found


def parent_of(pid: int) -> int:
    """The id of the process's parent; 0 where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def idle(mark: str) -> str:
    """A command that waits for ever, and can be found."""
    return f"bash -c 'while :; do sleep 999; done' {mark}"


WORKER = """
import asyncio, sys
from pathlib import Path
from agents.engine.interfaces.services import Space
from agents.plugins.shell import probe, process
if sys.argv[1] == "unboxed":
    probe.sandbox = lambda: None
asyncio.run(process.run(process.shell(sys.argv[2]), Path(sys.argv[3]), Space(), 300, lambda text: None))
"""


def start_worker(desk: Desk, machine: str, command: str) -> subprocess.Popen[bytes]:
    """A process of its own that runs this command, for a test to kill."""
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, machine, command, str(desk.workspace)],
        cwd=Path(__file__).parents[2],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
