"""A running command, seen from the worker: what it prints as it comes, and how it ended.

The worker starts a supervisor (see `supervise`), tells it what to run, and reads. It never waits for the command's own
processes, nor can they fill its memory: cancelled or killed, it leaves the rest to the supervisor.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from agents.engine.errors import ToolError
from agents.plugins.shell import sandbox
from agents.plugins.shell.limits import MEMORY, PROCESSES
from agents.plugins.shell.supervise import HEADER, ExitReport, Order

_CODE = Path(__file__).parents[3]
_PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where commands are found. Not the worker's own path: its first folder may be the site's virtual environment, and what
an agent installs shall not land there."""
_PASSED_ON = ("TZ",)
"""What a command learns of the worker's environment, which is where keys and passwords are."""
_PRINTABLE = str.maketrans("\0", "\N{REPLACEMENT CHARACTER}")
"""PostgreSQL keeps no NUL, in text or in JSON."""


@dataclass(frozen=True)
class Ended:
    """How a command ended. `exit` as a shell says it; `note`: what was cut, why it was ended early, or ""."""

    stdout: str
    stderr: str
    exit: int
    seconds: float
    note: str


async def run(command: str, workspace: Path, seconds: int, show: Callable[[str], None]) -> Ended:
    """Run a shell command in `workspace`, boxed where that works, for at most `seconds`.

    `show` is given its output as it comes. Cancelled, it has the command and all it started ended before it goes on.
    Raises ToolError where the end was not seen.
    """
    supervisor = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-S", "-m", "agents.plugins.shell.supervise"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        cwd="/",
        env={"PYTHONPATH": str(_CODE)},
        start_new_session=True,
    )
    tells, hears = cast("asyncio.StreamWriter", supervisor.stdin), cast("asyncio.StreamReader", supervisor.stdout)
    try:
        tells.write(json.dumps(_order(command, workspace, seconds)).encode() + b"\n")
        return await _listen(hears, seconds, show)
    finally:
        tells.close()
        await asyncio.shield(_gone(supervisor, hears))


async def _gone(supervisor: Process, hears: asyncio.StreamReader) -> None:
    """Wait for the supervisor's end, and so for the command's. What it still says is read, so that it can say it."""
    while await hears.read(2**16):
        pass
    await supervisor.wait()


def _order(command: str, workspace: Path, seconds: int) -> Order:
    boxed = sandbox.works()
    home = sandbox.INSIDE if boxed else str(workspace)
    shell = [shutil.which("bash", path=_PATH) or "/bin/sh", "-c", command]
    return {
        "argv": [*sandbox.box(workspace), *shell] if boxed else shell,
        "env": _environment(home),
        "folder": str(workspace),
        "seconds": seconds,
        "boxed": boxed,
    }


def _environment(home: str) -> dict[str, str]:
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {"PATH": _PATH, "HOME": home, "LANG": "C.UTF-8", **passed_on}


async def _listen(hears: asyncio.StreamReader, seconds: int, show: Callable[[str], None]) -> Ended:
    output = {b"o": bytearray(), b"e": bytearray()}
    decoders = {letter: codecs.getincrementaldecoder("utf-8")("replace") for letter in output}
    async for letter, content in _frames(hears):
        if letter == b"r":
            report: ExitReport = json.loads(content)
            out, err = (_text(bytes(stream)) for stream in output.values())
            return Ended(out, err, report["exit"], report["seconds"], _note(report, seconds))
        output[letter] += content
        if piece := decoders[letter].decode(content):
            show(piece.translate(_PRINTABLE))
    raise ToolError("The command's supervisor was killed, so its end was not seen.", code="killed")


async def _frames(hears: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bytes]]:
    """What the supervisor says, until it says no more."""
    try:
        while True:
            letter, length = HEADER.unpack(await hears.readexactly(HEADER.size))
            yield letter, await hears.readexactly(length)
    except asyncio.IncompleteReadError:
        return


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace").translate(_PRINTABLE)


def _note(report: ExitReport, seconds: int) -> str:
    ended = {
        "": "",
        "time": f"Ended after {seconds} seconds, its time limit.",
        "memory": f"Ended: it used more than {MEMORY // 2**30} GiB of memory.",
        "processes": f"Ended: it ran more than {PROCESSES} processes at one time.",
        "left": "Ended from outside.",
    }
    cut = f"{report['left_out']:,} bytes of its output were left out." if report["left_out"] else ""
    return " ".join(filter(None, (ended[report["stopped"]], cut)))
