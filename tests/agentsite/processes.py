"""Real processes of the site, each with a data folder and a port of its own."""

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 120.0

T = TypeVar("T")


def wait_for(condition: Callable[[], T]) -> T:
    """Ask until the answer is true, and return it. Fails after PATIENCE_SECONDS."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if answer := condition():
            return answer
        time.sleep(0.02)
    raise AssertionError("What the test waits for did not happen.")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def variables(folder: Path, **more: str) -> dict[str, str]:
    """An environment with SQLite in `folder` and one web process, and `more`.

    The tables are there: a site needs two seconds for them.
    """
    database = _database(folder)
    if not (database.exists() or "DATABASE_URL" in more):
        database.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(_template(), database)
    return _environment(folder) | more


def _environment(folder: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    return {**inherited, "AGENTSITE_DATA": str(folder), "AGENTSITE_WEB": "1"}


def _database(folder: Path) -> Path:
    return folder / "data" / "agentsite.sqlite3"


@cache
def _template() -> Path:
    """Return a migrated database, made once in each process that runs tests."""
    folder = Path(tempfile.mkdtemp(prefix="agentsite-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    migrated = run("manage.py", "migrate", environment=_environment(folder))
    assert migrated.returncode == 0, migrated.stderr
    return _database(folder)


def run(
    *command: str, environment: dict[str, str], seconds: float = PATIENCE_SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run a Python command to its end, which must come in time."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


@contextmanager
def started(*command: str, environment: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Python command that runs on, with all it prints in `log`; killed at the end where it still runs."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def connect(port: int) -> socket.socket:
    """A connection to 127.0.0.1, as soon as somebody listens there."""

    def attempt() -> socket.socket | None:
        with suppress(OSError):
            return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
        return None

    connection = wait_for(attempt)
    assert connection is not None
    return connection


def processes_of(folder: Path) -> list[int]:
    """The processes whose environment names `folder` as AGENTSITE_DATA (from /proc, so Linux only)."""
    wanted = f"AGENTSITE_DATA={folder}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # not ours, or gone by now
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found
