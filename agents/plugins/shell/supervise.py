"""The supervisor process: runs one command for a worker, and ends everything that the command started.

    stdin    one line of JSON, the order; then it stays open: its end means that the worker gave up, or died
    stdout   frames: a letter, the content's length in four bytes, the content. `o` and `e` are pieces of the command's
             stdout and stderr as they arrive, without the middle of a long one; `r`, the last frame, is the report

It uses only the standard library, so that it starts in milliseconds, and one thread, so that it may fork.
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
from pathlib import Path
from typing import IO, TypedDict, cast

from agents.plugins.files.usage import Usage
from agents.plugins.shell import cgroup, tree
from agents.plugins.shell.limits import MEMORY, OUTPUT, PROCESSES, confine
from agents.plugins.shell.sandbox import command_line
from agents.plugins.shell.usage import Folder, hidden, unlisted
from agents.plugins.shell.user import hand_over

PROGRAM = (sys.executable, "-P", "-S", "-m", "agents.plugins.shell.supervise")
ENVIRONMENT = {"PYTHONPATH": str(Path(__file__).parents[3])}
"""How the supervisor is started: with nothing of the worker's environment, which may hold keys and passwords."""
HEADER = struct.Struct(">cI")
GRACE_SECONDS = 2.0
"""Seconds between asking a command to end (SIGTERM) and killing it."""
END_SECONDS = 5.0
"""Seconds that killed processes may take to end. There is no use in waiting longer: one may hang in the kernel."""
TICK_SECONDS = 0.02
"""Seconds between two counts of its processes: a fork bomb doubles in about that time."""
LOOK_SECONDS = 0.1
"""Seconds between two checks of what it uses. A check took 12 microseconds for each process on the machine."""


class Order(TypedDict):
    """What to run. `place`: the inherited descriptor of the folder in `folder` where a command without a sandbox
    starts; None for `folder` itself. `most`: the bytes and files that the folder may hold. `sandbox`: the program of
    one and its options, or nothing. The program of a sandbox ends with the command; only what is in it gets SIGTERM.
    `user`: whom the folder is given to, and as whom the command runs; None for the worker's own.
    """

    argv: list[str]
    env: dict[str, str]
    folder: str
    place: int | None
    most: tuple[int, int]
    seconds: int
    sandbox: list[str]
    user: int | None


class ExitReport(TypedDict):
    """How the command ended. `exit` is the shell's exit status; `stopped` says why it ended early: time, memory,
    processes, folder or left (the worker gave up or died); "" if it did not.
    """

    exit: int
    seconds: float
    stopped: str
    left_out: int


class TruncatedStream:
    """One stream of output. Its beginning is passed on at once; of what is too long, the end is kept."""

    def __init__(self, letter: bytes) -> None:
        self.letter = letter
        self.room = OUTPUT // 2
        self.tail = bytearray()
        self.left_out = 0

    def take(self, data: bytes) -> bytes:
        """Add `data`. Returns the part of it that is passed on now."""
        now, later = data[: self.room], data[self.room :]
        self.room -= len(now)
        self.tail += later
        if len(self.tail) > OUTPUT:  # twice what is kept: cutting copies, so it is done rarely
            self._cut()
        return now

    def rest(self) -> bytes:
        """Return what is passed on at the end of the stream."""
        self._cut()
        gap = f"\n[... {self.left_out:,} bytes left out ...]\n".encode() if self.left_out else b""
        return gap + bytes(self.tail)

    def _cut(self) -> None:
        beyond = max(len(self.tail) - OUTPUT // 2, 0)
        self.left_out += beyond
        del self.tail[:beyond]


class Supervisor:
    """The supervisor of one running command. `group`: the control group that it runs in, if there is one."""

    def __init__(self, order: Order, group: cgroup.Group | None) -> None:
        tree.adopt_orphans()
        self.order, self.worker, self.group = order, os.getppid(), group
        self.woken = _wake_on(signal.SIGCHLD, signal.SIGTERM)
        if order["user"] is not None:
            hand_over(order["folder"], order["user"])
        self.folder = Folder(order["folder"], Usage(*order["most"]))
        self.began = time.monotonic()
        self.child = _start(order, group)
        out, err = cast("IO[bytes]", self.child.stdout), cast("IO[bytes]", self.child.stderr)
        self.open = {out.fileno(): TruncatedStream(b"o"), err.fileno(): TruncatedStream(b"e")}
        self.streams = list(self.open.values())
        self.outbox = bytearray()
        self.wanted = True
        self.stopped = ""
        self.first = 0  # the child's own first child: in a sandbox, the first process of its namespace
        self.count_at = self.look_at = time.monotonic()
        os.set_blocking(1, False)  # a worker that does not read must not keep a command alive

    def run(self) -> None:
        """Wait for the command to end, or end it; end what it left behind; then write the report."""
        kill_at = float("inf")
        while self.child.returncode is None and time.monotonic() < kill_at:
            self._turn(TICK_SECONDS)
            if not self.stopped and (why := self._reason_to_stop()):
                self.stopped = why
                kill_at = time.monotonic() + self._ask_to_end()
        seconds = time.monotonic() - self.began
        self._end()
        if not self.stopped and self.group and self.group.ran_out():
            self.stopped = "memory"
        code = self.child.returncode
        self._report(-signal.SIGKILL if code is None else code, seconds)

    def _reason_to_stop(self) -> str:
        if not self.wanted or os.getppid() != self.worker:  # a process that the worker forked may hold our stdin open
            return "left"
        if time.monotonic() - self.began > self.order["seconds"]:
            return "time"
        return self._too_much()

    def _too_much(self) -> str:
        """Return which limit the command exceeds, "" for none. Counts again only when it is time to."""
        now = time.monotonic()
        if now >= self.count_at:
            self.count_at = now + TICK_SECONDS
            if tree.population(self.child.pid, self.first) > PROCESSES:
                return "processes"
        self.folder.go_on()
        if now >= self.look_at:
            with tree.ahead_of_all():
                alive = tree.descendants(self.child.pid)
            self.first = next((process.pid for process in alive if process.parent == self.child.pid), 0)
            if len(alive) > PROCESSES:
                return "processes"
            pids = [process.pid for process in alive]
            in_memory, on_disk = unlisted(pids, self.folder.device)
            in_memory += sum(process.memory for process in alive)
            if self.group.ran_out() if self.group else in_memory > MEMORY:
                return "memory"
            if self.folder.is_full(on_disk, partial(hidden, pids, self.folder.device)):
                return "folder"
            self.look_at = time.monotonic() + LOOK_SECONDS
        return ""

    def _ask_to_end(self) -> float:
        """Send SIGTERM to everything that runs. Returns the seconds to wait for it: 0 if that would let it grow."""
        if self.stopped in ("processes", "memory", "folder"):
            return 0
        box = self.child.pid if self.order["sandbox"] else 0
        running = tree.descendants(self.child.pid)
        tree.send(signal.SIGTERM, (process.pid for process in running if process.pid != box))
        return GRACE_SECONDS

    def _end(self) -> None:
        """Kill everything that is left, and read the rest of the output."""
        give_up = time.monotonic() + END_SECONDS
        if self.child.returncode is None:  # the id of a child that was already waited for may have been reused
            if self.order["sandbox"]:
                tree.kill_box(self.child.pid, self.first)
            else:
                tree.send(signal.SIGSTOP, [self.child.pid], os.killpg)
        with tree.ahead_of_all():
            while tree.descendants(self.child.pid) and time.monotonic() < give_up:
                if self.child.returncode is not None or not self.order["sandbox"]:
                    tree.kill(self.child.pid)
                self._turn(0.01)
        while self.open and time.monotonic() < give_up:
            self._turn(TICK_SECONDS)

    def _turn(self, seconds: float) -> None:
        """Pass on output once, after waiting at most `seconds` for something to happen."""
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
            stream = self.open[descriptor]
            self._send(stream.letter, stream.take(data))
        else:
            del self.open[descriptor]

    def _send(self, letter: bytes, content: bytes) -> None:
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
        """Collect the status of every process that ended: our child, and the orphans that we adopted."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.child.pid:
                    self.child.returncode = os.waitstatus_to_exitcode(ended[1])

    def _report(self, code: int, seconds: float) -> None:
        for stream in self.streams:
            self._send(stream.letter, stream.rest())
        report: ExitReport = {
            "exit": code if code >= 0 else 128 - code,
            "seconds": seconds,
            "stopped": self.stopped,
            "left_out": sum(stream.left_out for stream in self.streams),
        }
        self._send(b"r", json.dumps(report).encode())
        while self.outbox and self.wanted:
            self._turn(TICK_SECONDS)


def _start(order: Order, group: cgroup.Group | None) -> subprocess.Popen[bytes]:
    with command_line(order["sandbox"], order["argv"]) as (argv, inherited):
        return subprocess.Popen(
            argv,
            env=order["env"],
            cwd="/" if order["user"] else order["folder"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=inherited,
            start_new_session=True,
            preexec_fn=partial(_prepare, order, group, os.getpid()),  # noqa: PLW1509 - this process has one thread
        )


def _prepare(order: Order, group: cgroup.Group | None, parent: int) -> None:
    """Confine this process, which is to become the command. If that fails, end as a shell would."""
    try:
        if order["place"] is not None:
            os.fchdir(order["place"])
        if group:
            group.enter()
        confine(order["seconds"], order["user"], order["folder"], parent)
    except OSError as error:
        os.write(2, f"The command cannot be confined: {error}\n".encode())
        os._exit(127)


def _wake_on(*numbers: signal.Signals) -> int:
    """Return a descriptor from which the number of each of these signals can be read when it arrives."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return woken


def main() -> int:
    """Carry out the order on stdin. If the command cannot be started, report it as a shell would: 127, and why."""
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return 1  # the worker died before it had sent the order
    order: Order = json.loads(line)
    # a command with the rights of the worker could leave its group again
    with cgroup.group() if order["sandbox"] else contextlib.nullcontext() as group:
        try:
            supervisor = Supervisor(order, group)
        except (OSError, subprocess.SubprocessError) as error:
            report: ExitReport = {"exit": 127, "seconds": 0.0, "stopped": "", "left_out": 0}
            for letter, content in ((b"e", str(error).encode()), (b"r", json.dumps(report).encode())):
                sys.stdout.buffer.write(HEADER.pack(letter, len(content)) + content)
            return 0
        supervisor.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
