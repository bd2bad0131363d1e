"""Supervising child processes: keeping them running, and ending them together.

Each child leads a process group of its own: Ctrl-C in a terminal reaches only the parent, which then ends the children
in order. On Linux a child gets SIGTERM when its parent dies, whatever the cause.
"""

import logging
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from agents.plugins.shell.tree import die_with_parent

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.5  # before a dead child starts again; doubled each time ...
LONGEST_PAUSE_SECONDS = 30.0  # ... up to this
LOOK_SECONDS = 1.0  # between two calls of what a family is to look at
STEADY_SECONDS = 60.0  # after a child ran this long, its next pause is the first one again


class Child:
    """A command that is kept running for as long as its parent runs."""

    def __init__(
        self,
        name: str,
        command: list[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.command = command  # may be changed; the next start uses it
        self.folder = folder  # its working directory
        self.environment = environment  # None: the parent's
        self.descriptors = descriptors  # open files of the parent that it has too, under the same numbers
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._due: float | None = None  # when it starts again, on the monotonic clock; None while it runs
        self._pause = FIRST_PAUSE_SECONDS

    def start(self) -> None:
        """Start it now."""
        self._process = subprocess.Popen(
            self.command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            pass_fds=self.descriptors,
            preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509 - it takes no lock that another thread could hold
            process_group=0,
        )
        self._started, self._due = time.monotonic(), None
        self.starts += 1

    @property
    def pid(self) -> int:
        """The id of its process; 0 before its first start."""
        return self._process.pid if self._process else 0

    @property
    def running(self) -> bool:
        """Whether its process is alive."""
        return self._process is not None and self._process.poll() is None

    def tend(self) -> float | None:
        """Restart it if it died and its pause is over. Return the seconds left of the pause, or None if it runs."""
        if self.running:
            return None
        now = time.monotonic()
        if self._due is None:
            self._plan_restart(now)
        if self._due is not None and self._due > now:
            return self._due - now
        self.start()
        return None

    def stop(self, patience_seconds: float, hurry: Callable[[], bool]) -> bool:
        """End it with SIGTERM; after the patience, or in a `hurry`, kill its group. Return whether SIGTERM sufficed."""
        if self._process is None:
            return True
        clean = self._ends_by_itself(self._process, patience_seconds, hurry)
        self._kill_group(self._process)
        self._process.wait()
        return clean

    @staticmethod
    def _kill_group(process: subprocess.Popen[bytes]) -> None:
        with suppress(ProcessLookupError, PermissionError):  # the group is empty, as it should be
            os.killpg(process.pid, signal.SIGKILL)

    @staticmethod
    def _ends_by_itself(process: subprocess.Popen[bytes], patience_seconds: float, hurry: Callable[[], bool]) -> bool:
        process.terminate()
        deadline = time.monotonic() + patience_seconds
        while time.monotonic() < deadline and not hurry():
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.1)
                return True
        return False

    def _plan_restart(self, now: float) -> None:
        if now - self._started >= STEADY_SECONDS:
            self._pause = FIRST_PAUSE_SECONDS
        code = self._process.returncode if self._process else None
        if self._process:
            self._kill_group(self._process)  # what it left behind would run beside the new one
        logger.error("The %s ended with %s; it starts again in %g s.", self.name, code, self._pause)
        self._due = now + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE_SECONDS)


class Family:
    """All children of this process, and the signals that end them."""

    def __init__(self) -> None:
        self.children: list[Child] = []
        self.signals = 0  # SIGINT and SIGTERM so far: the first ends the children, the second kills them
        self._waker, self._wakened = socket.socketpair()
        for each in (self._waker, self._wakened):
            each.setblocking(False)

    @property
    def stopping(self) -> bool:
        """Whether a signal to stop has arrived."""
        return self.signals > 0

    def add(self, child: Child) -> Child:
        """Start a child and keep it running from now on."""
        self.children.append(child)
        child.start()
        return child

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count SIGINT and SIGTERM instead of dying, and wake for them and for a child's death. Can be used once."""
        before = {number: signal.signal(number, self._count) for number in (signal.SIGINT, signal.SIGTERM)}
        # The wakeup descriptor is written only for signals with a Python handler, so SIGCHLD needs one too.
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        wakeup = signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._waker.close()
            self._wakened.close()

    def wait(self, seconds: float | None, also: Collection[int] = ()) -> bool:
        """Sleep until a signal arrives, a child dies, or `seconds` have passed; None: without a limit.

        One of the descriptors `also` that can be read wakes it, too. Return whether something woke it.
        """
        woken, _, _ = select.select([self._wakened.fileno(), *also], [], [], seconds)
        with suppress(BlockingIOError):
            while self._wakened.recv(4096):
                pass
        return bool(woken)

    def tend(self, look: Callable[[], object] | None = None) -> None:
        """Keep every child running until a signal to stop arrives. Meanwhile, `look` is called every second."""
        while not self.stopping:
            pause = self.restart_dead()
            if look:
                look()
                pause = LOOK_SECONDS if pause is None else min(pause, LOOK_SECONDS)
            self.wait(pause)

    def restart_dead(self) -> float | None:
        """Restart each dead child whose pause is over. Return the seconds until the next is due, or None if all run."""
        return min((pause for child in self.children if (pause := child.tend()) is not None), default=None)

    def restart(self, children: Sequence[Child], patience_seconds: float) -> None:
        """End these children, the last one first, each within its patience, and start them again."""
        for child in reversed(children):
            child.stop(patience_seconds, lambda: self.stopping)
        if not self.stopping:
            for child in children:
                child.start()

    def stop(self, patience_seconds: float) -> bool:
        """End the children, the last one first, each within its patience. Return whether all ended by themselves."""
        ended = [child.stop(patience_seconds, lambda: self.signals > 1) for child in reversed(self.children)]
        return all(ended)

    def _count(self, _number: int, _frame: object) -> None:
        self.signals += 1


def _die_with(parent: int) -> Callable[[], None]:
    """Return what a new child runs before its program starts."""

    def ask() -> None:
        die_with_parent(signal.SIGTERM)
        if os.getppid() != parent:  # the parent died before this could be set up
            os._exit(1)

    return ask
