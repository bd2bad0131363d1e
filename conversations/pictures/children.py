"""The child processes that draw: at most two, started when they are needed, ended when they take too long.

Each has a thread of this process, which starts it, hands it one diagram after the other and waits. The thread lives as
long as this process does: Linux ends a child with the thread that started it. A child also ends when its socket is
closed, which happens however this process ends.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from conversations.pictures.mermaid import NotDrawn
from conversations.pictures.theme import Theme

logger = logging.getLogger(__name__)

CHILDREN = 2
SECONDS = 5.0
"""How long one drawing may take. Ordinary ones take hundredths of a second."""
WAITING_MOST = 32
"""Drawings that wait for a child. With all of them in time, the last waits a second or two."""
START_SECONDS = 30.0
"""For a child to be ready: a quarter of a second, but not on a machine that has just started everything."""
IDLE_SECONDS = 600.0
"""After which a child that draws nothing ends. It keeps 40 MB."""
ANSWER_MOST = 8_000_000
"""Bytes of an answer. The largest picture that the library's own limits let through has a quarter of it."""
STOPPED = "Drawing failed. The diagram may be too large."
ROOT = Path(__file__).parents[2]
ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH")
"""The variables that a child gets, and no other: it needs to find Python."""


class Busy(Exception):
    """Too many drawings wait already. Ask again in a moment."""


class Stopped(NotDrawn):
    """The child ended, or was ended, while it drew: another time, on a quieter machine, it may not."""


@dataclass(frozen=True)
class Job:
    """A drawing that was asked for."""

    source: str
    theme: Theme
    done: Future[str]


class Children:
    """A few child processes, and the queue before them. Safe to use from many threads.

    `seconds`: the time limit of one drawing; `idle`: how long a child without work stays, in seconds.
    """

    def __init__(
        self,
        count: int = CHILDREN,
        seconds: float = SECONDS,
        waiting_most: int = WAITING_MOST,
        idle: float = IDLE_SECONDS,
    ) -> None:
        self._jobs: queue.Queue[Job | None] = queue.Queue(waiting_most)
        self._drawers = [Drawer(self._jobs, seconds, idle) for _ in range(count)]
        self._lock = threading.Lock()
        self._started = self._closed = False

    @property
    def pids(self) -> list[int]:
        """The ids of the child processes that run now."""
        return [child.pid for drawer in self._drawers if (child := drawer.child) and child.running]

    def draw(self, source: str, theme: Theme) -> Future[str]:
        """Return the SVG of a diagram, later: NotDrawn is the future's exception. Raises Busy."""
        job = Job(source, theme, Future())
        with self._lock:
            if self._closed:
                raise Busy
            if not self._started:
                self._start()
            try:
                self._jobs.put_nowait(job)
            except queue.Full as full:
                raise Busy from full
        return job.done

    def close(self) -> None:
        """End all child processes, for good. What is drawn or waits now is not drawn."""
        with self._lock:
            self._closed = True
            atexit.unregister(self.close)
            with contextlib.suppress(queue.Empty):
                while True:
                    if job := self._jobs.get_nowait():
                        job.done.set_exception(Stopped(STOPPED))
        for drawer in self._drawers:
            drawer.end()
            if self._started:
                self._jobs.put(None)

    def _start(self) -> None:
        self._started = True
        atexit.register(self.close)
        for drawer in self._drawers:
            drawer.start()


class Drawer(threading.Thread):
    """A thread that has one child process draw what is asked for. `child`: None while there is none."""

    def __init__(self, jobs: queue.Queue[Job | None], seconds: float, idle: float) -> None:
        super().__init__(name="drawer", daemon=True)
        self.child: Child | None = None
        self._jobs, self._seconds, self._idle = jobs, seconds, idle
        self._ended = False

    def run(self) -> None:
        """Draw one diagram after the other, until there is None."""
        while True:
            try:
                job = self._jobs.get(timeout=self._idle)
            except queue.Empty:
                self._end_child()
                continue
            if job is None:
                return
            if job.done.set_running_or_notify_cancel():
                self._fulfil(job)

    def end(self) -> None:
        """End the child, and start no other."""
        self._ended = True
        self._end_child()

    def _fulfil(self, job: Job) -> None:
        try:
            job.done.set_result(self._draw(job))
        except NotDrawn as refused:
            job.done.set_exception(refused)
        except Exception:  # a job without an end would be waited for
            logger.exception("a diagram could not be drawn")
            job.done.set_exception(Stopped(STOPPED))

    def _draw(self, job: Job) -> str:
        try:
            answer = self._running().ask({"source": job.source, "theme": job.theme}, self._seconds)
        except TimeoutError as late:
            self._end_child()
            raise Stopped(f"Drawing took longer than {self._seconds:g} seconds.") from late
        except (OSError, EOFError, ValueError) as error:
            self._end_child()
            raise Stopped(STOPPED) from error
        if "svg" not in answer:
            raise NotDrawn(answer.get("refused", STOPPED))
        return answer["svg"]

    def _running(self) -> Child:
        if self.child is None or not self.child.running:
            self._end_child()
            self.child = Child()
            self.child.ready()
        if self._ended:  # in the meantime
            self._end_child()
            raise Stopped(STOPPED)
        return self.child

    def _end_child(self) -> None:
        if child := self.child:
            child.end()
            self.child = None


class Child:
    """A child process and the socket to it. Used by one thread, and ended by any."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "conversations.pictures.child", str(os.getpid())],
                cwd=ROOT,
                env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                process_group=0,  # Ctrl-C in a terminal reaches only its parent
            )
        self._socket = ours

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process.poll() is None

    def ready(self) -> None:
        """Wait until it can draw. Raises TimeoutError, or EOFError if it ended."""
        self._answer(time.monotonic() + START_SECONDS)

    def ask(self, request: dict[str, str], seconds: float) -> dict[str, str]:
        """Return its answer. Raises TimeoutError, EOFError or OSError if it ended, ValueError if it is no answer."""
        deadline = time.monotonic() + seconds
        self._socket.settimeout(seconds)
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        return self._answer(deadline)

    def end(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()
        self._socket.close()

    def _answer(self, deadline: float) -> dict[str, str]:
        read = bytearray()
        while not read.endswith(b"\n"):
            self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
            piece = self._socket.recv(65_536)
            if not piece:
                raise EOFError
            read += piece
            if len(read) > ANSWER_MOST:
                raise ValueError("an endless answer")
        answer: dict[str, str] = json.loads(read)
        return answer
