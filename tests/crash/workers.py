"""Two ways to run a site's turns: the whole `manage.py worker`, or only its drain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from django.conf import settings
from django.db import connection

from conversations.ledger.claims import claimable
from conversations.worker import hosts
from tests.crash.site import Site
from tests.idle import drain_until_idle

ROOT = Path(__file__).resolve().parents[2]


class Worker(Protocol):
    """Something that runs the turns of a site."""

    def tend(self, stalled: int = 0) -> None:
        """Make sure that a process works alongside the stopped one. Called regularly."""
        ...

    def runs(self, pid: int) -> bool:
        """Whether this process of it is still running."""
        ...

    def stop(self) -> int:
        """Stop it as a service manager would; return its exit code."""
        ...


class Whole:
    """`manage.py worker`: parent, cluster, watchdog, sweep."""

    def __init__(self, site: Site, **more: str) -> None:
        with site.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "worker"],
                cwd=ROOT,
                env=site.environment(**more),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def tend(self, stalled: int = 0) -> None:
        """Do nothing: the worker does so itself."""

    def runs(self, pid: int) -> bool:
        return Path(f"/proc/{pid}").exists()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Lean:
    """Only the drain, forked from this process: what the cluster would start, without the seconds of its start.

    It ends when there is nothing to do. One that ended or died is started again when there is work and the host has
    none.
    """

    def __init__(self, site: Site, **more: str) -> None:
        self._site, self._more = site, more
        self._processes: list[int] = []

    def tend(self, stalled: int = 0) -> None:
        self._reap()
        if not set(self._processes) - {stalled} and claimable(1) and not hosts.live_drains(self._site.name):
            self._start()

    def runs(self, pid: int) -> bool:
        self._reap()
        return pid in self._processes

    def stop(self) -> int:
        code = 0
        for pid in self._processes:
            os.kill(pid, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return code

    def _reap(self) -> None:
        self._processes = [pid for pid in self._processes if not os.waitpid(pid, os.WNOHANG)[0]]

    def _start(self) -> None:
        connection.close()  # so that no child shares it
        if pid := os.fork():
            self._processes.append(pid)
            return
        try:
            self._work()
        finally:
            os._exit(0)

    def _work(self) -> None:
        environment = self._site.environment(**self._more)
        os.environ.update(environment)
        settings.AGENTSITE_WORKSPACES = environment["AGENTSITE_WORKSPACES"]
        settings.AGENTSITE_MODEL_NORMAL = environment["AGENTSITE_MODEL_NORMAL"]
        settings.OPENAI_BASE_URL = environment["OPENAI_BASE_URL"]
        settings.AGENTSITE_TOOL_TOKENS = int(environment["AGENTSITE_TOOL_TOKENS"])
        log = os.open(self._site.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        drain_until_idle()
