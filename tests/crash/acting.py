"""Helpers for tests of processes: wait for a turn, read its ledger, start a drain or a web server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db.models import F

from agents.engine.ledger import JSON
from conversations.models import Output, Prompt, Step
from conversations.models import Worker as WorkerRow
from conversations.verification.stored import verify
from conversations.worker import hosts
from tests.agentsite.processes import connect, free_port
from tests.budget import share
from tests.crash.processes import Cluster, cluster, wait_for
from tests.crash.site import Site
from tests.crash.workers import ROOT, Whole

Start = Callable[..., Whole]
MARKS = [
    pytest.mark.crash,
    pytest.mark.skipif(sys.platform != "linux", reason="/proc says which processes are the site's"),
]
both = pytest.mark.parametrize("site", share(["sqlite", "postgres"], of=2), indirect=True)
"""For a test that is for both databases: on both at night, and on one of them for a commit."""
postgres = pytest.mark.parametrize("site", ["postgres"], indirect=True)


def ended(site: Site, prompt: Prompt, card: str = "it_did_not") -> Prompt:
    """Wait for the end of the turn, approving every gate and answering every card; check its ledger."""

    def look() -> bool:
        for output in site.pending(prompt):
            site.decide(output, card if output.ask == "interrupted" else "approve")
        prompt.refresh_from_db()
        return prompt.ended

    wait_for(look, "the turn's end", site)
    assert verify(prompt.conversation_id).problems == []
    return prompt


def asks(site: Site, prompt: Prompt) -> Output:
    """Wait until the worker has released the turn; return its first pending gate."""

    def look() -> Output | None:
        prompt.refresh_from_db()
        return next(iter(site.pending(prompt)), None) if prompt.state == "waiting_for_approval" else None

    gate = wait_for(look, "a gate", site)
    assert gate is not None
    return gate


def began(site: Site) -> None:
    wait_for(lambda: site.effects()["1/0 began"], "the tool's beginning", site)


def idle(site: Site, worker: Whole) -> Cluster:
    """Wait until the worker's cluster has run a task and has its drain; return it, with that one first."""
    wait_for(lambda: WorkerRow.objects.filter(host=site.name, beat_at__gt=F("started_at")), "the first beat", site)
    wait_for(lambda: hosts.live_drains(site.name), "the drain", site)
    found = wait_for(lambda: cluster(site, worker.process.pid), "the whole cluster", site)
    assert found is not None
    return found


def payloads(prompt: Prompt, type: str, path: str = "1/0") -> list[JSON]:
    return [step.content for step in Step.objects.filter(prompt=prompt, path=path, type=type)]


def draining(site: Site, begin: Path | None = None, /, **more: str) -> subprocess.Popen[bytes]:
    """Start a process that drains once, without a worker, as soon as the file `begin` exists."""
    command = [sys.executable, "-m", "tests.crash.drainer", str(begin or ROOT)]
    with site.log.open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, env=site.environment(**more), stdout=log, stderr=log)


def doing(site: Site, script: str, *arguments: object, point: str) -> int:
    """Run `tests.crash.doer` in a process that is killed at the first pass of a point; return its exit code."""
    with site.log.open("ab") as log:
        return subprocess.run(
            [sys.executable, "-m", "tests.crash.doer", script, *map(str, arguments)],
            cwd=ROOT,
            env=site.environment(**killed_at(site, point)),
            stdout=log,
            stderr=log,
            check=False,
        ).returncode


def killed_at(site: Site, point: str, n: int = 1) -> dict[str, str]:
    """Return the environment variable that kills a process at the n-th pass of this point."""
    return {"AGENTSITE_CRASH": f"{point}:{n}:KILL:{site.folder / 'passes'}"}


@contextmanager
def served(site: Site, **more: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a web server of the site; yield it and its port. It is killed at the end."""
    port = free_port()
    with site.log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "agentsite.web"],
            cwd=ROOT,
            env=site.environment(PORT=str(port), **more),
            stdout=log,
            stderr=log,
        )
    try:
        connect(port).close()
        yield process, port
    finally:
        process.kill()
        process.wait()
