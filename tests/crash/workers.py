"""Two ways to have a site's prompts run: the whole `manage.py worker`, or only its drain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Protocol

from django.conf import settings
from django.db import connection

from conversations.journal import claimable
from conversations.worker import hosts
from conversations.worker.drain import drain
from tests.crash.site import Site

ROOT = Path(__file__).resolve().parents[2]


class Worker(Protocol):
    """Runs the prompts of a site."""

    def tend(self) -> None:
        """See to it that somebody works; called again and again."""
        ...

    def stop(self) -> int:
        """End it as a host's service manager would; returns its exit code."""
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

    def tend(self) -> None:
        """It tends itself."""

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Lean:
    """Only the drain, forked from this process: what the cluster would start, without the seconds of its start.

    A drain that ended or died is started again when there is work and no other holds the host's drain, as the sweep of
    the parent has it.
    """

    def __init__(self, site: Site, **more: str) -> None:
        self._site, self._more = site, more
        self._process = 0

    def tend(self) -> None:
        if self._process and os.waitpid(self._process, os.WNOHANG)[0]:
            self._process = 0
        if not self._process and claimable(1) and hosts.drain_is_free(self._site.name):
            self._start()

    def stop(self) -> int:
        if not self._process:
            return 0
        os.kill(self._process, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])

    def _start(self) -> None:
        connection.close()  # no child shares it
        self._process = os.fork()
        if self._process:
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
        log = os.open(self._site.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        drain()
