"""Runs one command for a worker, and lets nothing that it started outlive it. A process of its own.

    stdin    one line of JSON, the order; then it is held open: its end says that the worker gave up, or died
    stdout   frames: a letter, the content's length in four bytes, the content. `o` and `e` are pieces of the command's
             stdout and stderr as they come, the middle of a long one left out; `r`, last, is the report

It uses the standard library alone, so that it starts in milliseconds, and one thread, so that it may fork.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from functools import partial
from typing import IO, TypedDict, cast

from agents.plugins.shell import tree
from agents.plugins.shell.limits import MEMORY, PROCESSES, confine
from agents.plugins.shell.output import Kept

HEADER = struct.Struct(">cI")
GRACE_SECONDS = 2.0
"""Between asking a command to end (SIGTERM) and ending it."""
END_SECONDS = 5.0
"""How long killed processes may take to be gone: one that hangs in the kernel cannot be waited for."""
TICK_SECONDS = 0.02
"""Between two counts of its processes: a fork bomb doubles about as often."""
LOOK_SECONDS = 0.1
"""Between two looks at what it uses. A look took 12 microseconds for each process on the machine."""


class Order(TypedDict):
    """What to run. `boxed`: the program is the box and ends with the command; only what is in it is asked to end."""

    argv: list[str]
    env: dict[str, str]
    folder: str
    seconds: int
    boxed: bool


class ExitReport(TypedDict):
    """How it ended. `exit` as a shell says it; `stopped`: why early, if so: time, memory, processes, or left."""

    exit: int
    seconds: float
    stopped: str
    left_out: int


class Supervisor:
    """The command while it runs."""

    def __init__(self, order: Order) -> None:
        tree.adopt_orphans()
        self.order, self.worker = order, os.getppid()
        self.woken = _wake_on(signal.SIGCHLD, signal.SIGTERM)
        self.began = time.monotonic()
        self.child = subprocess.Popen(
            order["argv"],
            env=order["env"],
            cwd=order["folder"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=partial(confine, order["seconds"]),  # noqa: PLW1509 - this process has one thread
        )
        out, err = cast("IO[bytes]", self.child.stdout), cast("IO[bytes]", self.child.stderr)
        self.open = {out.fileno(): Kept(b"o"), err.fileno(): Kept(b"e")}
        self.kept = list(self.open.values())
        self.outbox = bytearray()
        self.wanted = True
        self.stopped = ""
        self.first = 0  # the child's own first child: in a box, the process that its namespace began with
        self.count_at = self.look_at = self.began
        os.set_blocking(1, False)  # a worker that does not read keeps no command alive

    def run(self) -> None:
        """Wait for the command's end, or bring it about; end what it left behind; then say how it went."""
        kill_at = float("inf")
        while self.child.returncode is None and time.monotonic() < kill_at:
            self._turn(TICK_SECONDS)
            if not self.stopped and (why := self._reason_to_stop()):
                self.stopped = why
                kill_at = time.monotonic() + self._ask_to_end()
        seconds = time.monotonic() - self.began
        self._end()
        code = self.child.returncode
        self._last_words(-signal.SIGKILL if code is None else code, seconds)

    def _reason_to_stop(self) -> str:
        if not self.wanted or os.getppid() != self.worker:  # a process that the worker forked may hold our stdin open
            return "left"
        if time.monotonic() - self.began > self.order["seconds"]:
            return "time"
        return self._too_much()

    def _too_much(self) -> str:
        """What the command uses too much of, as far as it is time to count again; "" for nothing."""
        now = time.monotonic()
        if now >= self.count_at:
            self.count_at = now + TICK_SECONDS
            if tree.population(self.child.pid, self.first) > PROCESSES:
                return "processes"
        if now >= self.look_at:
            self.look_at = now + LOOK_SECONDS
            with tree.ahead_of_all():
                alive = tree.descendants(self.child.pid)
            self.first = next((process.pid for process in alive if process.parent == self.child.pid), 0)
            if len(alive) > PROCESSES:
                return "processes"
            if sum(process.memory for process in alive) > MEMORY:
                return "memory"
        return ""

    def _ask_to_end(self) -> float:
        """Ask all that runs to end. Returns how many seconds to wait for it: none where that would let it grow."""
        if self.stopped in ("processes", "memory"):
            return 0
        box = self.child.pid if self.order["boxed"] else 0
        running = tree.descendants(self.child.pid)
        tree.send(signal.SIGTERM, (process.pid for process in running if process.pid != box))
        return GRACE_SECONDS

    def _end(self) -> None:
        """Kill all that is left, and take in what was still on its way."""
        give_up = time.monotonic() + END_SECONDS
        if self.child.returncode is None:  # the id of a child that was waited for may be somebody else's
            if self.order["boxed"]:
                tree.kill_box(self.child.pid, self.first)
            else:
                tree.stop_group(self.child.pid)
        with tree.ahead_of_all():
            while tree.descendants(self.child.pid) and time.monotonic() < give_up:
                if self.child.returncode is not None or not self.order["boxed"]:
                    tree.kill(self.child.pid)
                self._turn(0.01)
        while self.open and time.monotonic() < give_up:
            self._turn(TICK_SECONDS)

    def _turn(self, seconds: float) -> None:
        """Pass on what comes, until something happens or the time is over."""
        readers = [*self.open, self.woken, *([0] if self.wanted else [])]
        ready, writable, _ = select.select(readers, [1] if self.outbox else [], [], seconds)
        for descriptor in ready:
            self._read(descriptor)
        if writable:
            self._write()
        self._reap()

    def _read(self, descriptor: int) -> None:
        data = os.read(descriptor, 2**16)
        if descriptor == 0:
            self.wanted = bool(data)
        elif descriptor == self.woken:
            self.wanted = self.wanted and signal.SIGTERM not in data
        elif data:
            kept = self.open[descriptor]
            self._say(kept.letter, kept.take(data))
        else:
            del self.open[descriptor]

    def _say(self, letter: bytes, content: bytes) -> None:
        if content:
            self.outbox += HEADER.pack(letter, len(content)) + content

    def _write(self) -> None:
        try:
            del self.outbox[: os.write(1, self.outbox)]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self.wanted = False
            self.outbox.clear()

    def _reap(self) -> None:
        """Take the status of every process that ended: ours, and the orphans that were handed to us."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.child.pid:
                    self.child.returncode = os.waitstatus_to_exitcode(ended[1])

    def _last_words(self, code: int, seconds: float) -> None:
        for kept in self.kept:
            self._say(kept.letter, kept.rest())
        report: ExitReport = {
            "exit": code if code >= 0 else 128 - code,
            "seconds": seconds,
            "stopped": self.stopped,
            "left_out": sum(kept.left_out for kept in self.kept),
        }
        self._say(b"r", json.dumps(report).encode())
        while self.outbox and self.wanted:
            self._turn(TICK_SECONDS)


def _wake_on(*numbers: signal.Signals) -> int:
    """A descriptor that has the number of each of these signals to read as it comes."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return woken


def main() -> int:
    """Do the order on stdin. Where the command cannot be started at all, it ends as in a shell: 127, and why."""
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return 1  # the worker was gone before it had said what to do
    try:
        supervisor = Supervisor(json.loads(line))
    except (OSError, subprocess.SubprocessError) as error:
        report: ExitReport = {"exit": 127, "seconds": 0.0, "stopped": "", "left_out": 0}
        for letter, content in ((b"e", str(error).encode()), (b"r", json.dumps(report).encode())):
            sys.stdout.buffer.write(HEADER.pack(letter, len(content)) + content)
        return 0
    supervisor.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
