"""The processes of a site, found in /proc (Linux only). Signals are sent only to processes of the site."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from django.db import connection

from conversations.models import Prompt
from tests.crash.site import Site

PATIENCE_SECONDS = 180.0

T = TypeVar("T")


class Cluster(NamedTuple):
    """The background cluster of a site's worker: django-q2's parent, its sentinel, and the processes it started."""

    parent: int
    sentinel: int
    workers: list[int]
    others: list[int]  # the monitor and the pusher


def wait_for(condition: Callable[[], T], what: str, site: Site, patience_seconds: float = PATIENCE_SECONDS) -> T:
    """Poll until the condition is true, and return it. Fails with the end of the site's log."""
    deadline = time.monotonic() + patience_seconds
    while time.monotonic() < deadline:
        if answer := condition():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"{what}: not in {patience_seconds:g} s\n{site.said()[-4000:]}")


def alive(site: Site) -> dict[int, int]:
    """Return the live processes whose environment names the site as host, each with its parent, oldest first."""
    wanted = f"AGENTSITE_HOST={site.name}".encode()
    found = {}
    for pid in _pids():
        stat = _read(pid, "stat").rpartition(b")")[2].split()
        if stat and stat[0] != b"Z" and wanted in _read(pid, "environ").split(b"\0"):
            found[pid] = int(stat[1])
    return found


def cluster(site: Site, worker: int) -> Cluster | None:
    """Return the cluster of this `manage.py worker`; None until it has started completely."""
    family = alive(site)
    parent = next((pid for pid, by in family.items() if by == worker), None)
    sentinel = next((pid for pid, by in family.items() if by == parent), None)
    started = [pid for pid, by in family.items() if by == sentinel]
    if parent is None or sentinel is None or len(started) < 4:
        return None
    return Cluster(parent, sentinel, started[:2], started[2:])  # the sentinel starts its workers first


def kill(site: Site, pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to a process of the site. Fails for any other process."""
    assert pid in alive(site), f"{pid} is no living process of {site.name}"
    os.kill(pid, number)


def pause(site: Site, pid: int) -> None:
    """Stop a process of the site with SIGSTOP, at a moment when it does not hold SQLite's only write lock."""
    for _ in range(100):
        kill(site, pid, signal.SIGSTOP)
        if _writable():
            return
        kill(site, pid, signal.SIGCONT)
    raise AssertionError(f"{pid} seems to write all the time")


def _writable() -> bool:
    """Whether this process can write; on PostgreSQL a stopped process keeps only writers of the same rows waiting."""
    if connection.vendor != "sqlite":
        return True
    name = connection.settings_dict["NAME"]
    with closing(sqlite3.connect(name, timeout=0.2, isolation_level=None)) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
    return True


def kill_all(site: Site) -> None:
    """Kill all remaining processes of the site."""
    for pid in alive(site):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def running(words: str) -> list[int]:
    """Return the processes whose command line contains these words."""
    return [pid for pid in _pids() if words.encode() in _read(pid, "cmdline").replace(b"\0", b" ")]


def drain_of(prompt: Prompt) -> int:
    """Return the process that last claimed the prompt."""
    prompt.refresh_from_db()
    return int(prompt.worker.rpartition("/")[2].partition(".")[0])


def _pids() -> list[int]:
    return sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _read(pid: int, name: str) -> bytes:
    with suppress(OSError):  # ended meanwhile, or not ours
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""
