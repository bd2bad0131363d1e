"""The worker's side of a running command or program: its output as it arrives, and how it ended.

The worker starts a supervisor (see `supervise`), tells it what to run, and reads from it. It never waits for the
command's own processes, and they cannot fill its memory. If it is cancelled or killed, the supervisor cleans up.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from agents.engine.errors import ToolError
from agents.engine.interfaces.services import Space
from agents.engine.ledger import JSON
from agents.plugins.files.box import Box, parts
from agents.plugins.files.usage import readable
from agents.plugins.shell import probe
from agents.plugins.shell.limits import MEMORY, PROCESSES
from agents.plugins.shell.sandbox import INSIDE, PATH, Sandbox
from agents.plugins.shell.supervise import ENVIRONMENT, HEADER, PROGRAM, ExitReport, Order

_PASSED_ON = ("TZ",)
"""The only variables of the worker's environment that a command gets: the others may hold keys and passwords."""
_PRINTABLE = str.maketrans("\0", "\N{REPLACEMENT CHARACTER}")
"""PostgreSQL stores no NUL character, neither in text nor in JSON."""


def shell(command: str) -> list[str]:
    """Return the arguments with which a shell runs this command: bash, if the machine has it."""
    return [shutil.which("bash", path=PATH) or "/bin/sh", "-c", command]


def program(argv: Sequence[str]) -> list[str]:
    """Return the arguments that become this program with exactly these arguments.

    A shell looks the program up and says if there is none, as it does for a command; it reads none of the arguments.
    The first must not begin with a dash, which some shells would take for an option.
    """
    return ["/bin/sh", "-c", 'exec "$@"', "sh", *argv]


async def run(
    argv: Sequence[str], workspace: Path, space: Space, seconds: int, show: Callable[[str], None], *, folder: str = "."
) -> dict[str, JSON]:
    """Run a program in `folder` of `workspace` for at most `seconds`, in a sandbox if one is available.

    Returns its `stdout` and `stderr`, its `exit` status as a shell tells it, the `seconds` it took and, if its output
    was cut or it ended early, a `note` that says so. `show` is given its output as it arrives. If this coroutine is
    cancelled, the program and everything it started are ended before it returns. If the worker is root, `workspace` and
    all that is in it is given to the user of sandboxed commands first (see `user`). Raises ToolError if there is no
    such folder in the workspace, and if the supervisor was killed, so that the end was not seen.
    """
    sandbox = await asyncio.to_thread(probe.sandbox)
    with _opened(workspace, folder) as place:
        order = _order(sandbox, argv, workspace, space, seconds)
        if sandbox:
            order["sandbox"] = sandbox.box(workspace, "/".join([INSIDE, *parts(folder)]))
        else:
            order["place"] = place
        supervisor = await asyncio.create_subprocess_exec(
            *PROGRAM,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            cwd="/",
            env=ENVIRONMENT,
            start_new_session=True,
            pass_fds=() if place is None else (place,),
        )
    stdin, stdout = cast("asyncio.StreamWriter", supervisor.stdin), cast("asyncio.StreamReader", supervisor.stdout)
    try:
        stdin.write(json.dumps(order).encode() + b"\n")
        return await _listen(stdout, space, seconds, show)
    finally:
        stdin.close()
        await asyncio.shield(_wait_for_end(supervisor, stdout))


async def _wait_for_end(supervisor: Process, stdout: asyncio.StreamReader) -> None:
    """Wait until the supervisor, and so the command, has ended. Its output is read, so that it never blocks."""
    while await stdout.read(2**16):
        pass
    await supervisor.wait()


@contextmanager
def _opened(workspace: Path, folder: str) -> Iterator[int | None]:
    """Open the folder in which a program starts and yield its descriptor; None for the workspace itself."""
    if parts(folder):
        with Box(workspace).folder(folder) as descriptor:
            yield descriptor
    else:
        yield None


def _order(sandbox: Sandbox | None, argv: Sequence[str], workspace: Path, space: Space, seconds: int) -> Order:
    """Return the order to run this in the workspace itself, without a sandbox's options."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    home = INSIDE if sandbox else str(workspace)
    return {
        "argv": sandbox.inside(argv) if sandbox else [*argv],
        "env": {"PATH": PATH, "HOME": home, "LANG": "C.UTF-8", **passed_on},
        "folder": str(workspace),
        "place": None,
        "most": (space.room, space.files),
        "seconds": seconds,
        "sandbox": [],
        "user": sandbox.user if sandbox else None,
    }


async def _listen(
    stdout: asyncio.StreamReader, space: Space, seconds: int, show: Callable[[str], None]
) -> dict[str, JSON]:
    output = {b"o": bytearray(), b"e": bytearray()}
    decoders = {letter: codecs.getincrementaldecoder("utf-8")("replace") for letter in output}
    async for letter, content in _frames(stdout):
        if letter == b"r":
            report: ExitReport = json.loads(content)
            out, err = (stream.decode("utf-8", "replace").translate(_PRINTABLE) for stream in output.values())
            result = {"stdout": out, "stderr": err, "exit": report["exit"], "seconds": round(report["seconds"], 3)}
            note = _note(report, space, seconds)
            return result | ({"note": note} if note else {})
        output[letter] += content
        if piece := decoders[letter].decode(content):
            show(piece.translate(_PRINTABLE))
    raise ToolError("The command's supervisor was killed, so it is not known how the command ended.", code="killed")


async def _frames(stdout: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bytes]]:
    """Yield the supervisor's frames, until its output ends."""
    try:
        while True:
            letter, length = HEADER.unpack(await stdout.readexactly(HEADER.size))
            yield letter, await stdout.readexactly(length)
    except asyncio.IncompleteReadError:
        return


def _note(report: ExitReport, space: Space, seconds: int) -> str:
    ended = {
        "": "",
        "time": f"Ended after {seconds} seconds, its time limit.",
        "memory": f"Ended: it used more than {MEMORY // 2**30} GiB of memory.",
        "processes": f"Ended: it ran more than {PROCESSES} processes at the same time.",
        "folder": f"Ended: its folder grew beyond {readable(space.room)} or {space.files:,} files, or filled the disk.",
        "left": "Ended from outside.",
    }
    cut = f"{report['left_out']:,} bytes of its output were left out." if report["left_out"] else ""
    return " ".join(filter(None, (ended[report["stopped"]], cut)))
