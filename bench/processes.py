"""The site's processes in a benchmark: starting them, waiting for them, and measuring what they use."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import support

PATIENCE_SECONDS = 120


@contextmanager
def started(*command: str) -> Iterator[int]:
    """Run a Python command in the background, and end it at the end of the block. Yields its process id.

    What it says goes to standard error: the standard output is for figures.
    """
    process = subprocess.Popen([sys.executable, *command], cwd=support.ROOT, stdout=sys.stderr)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def await_answer(address: str) -> None:
    """Wait until the web process answers on this port."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("The web process does not answer.")


@contextmanager
def logged(command: list[str], log: Path, settings: dict[str, str]) -> Iterator[int]:
    """Run a program while the block runs, and show the end of what it wrote where the block fails.

    `settings` are added to its environment. Yields its process id.
    """
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=support.ROOT, env={**os.environ, **settings}, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process.pid
    except BaseException:
        print(log.read_text()[-4000:])
        raise
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ProcessUsage:
    """The CPU time and memory that named processes and their descendants use from now on."""

    def __init__(self, processes: dict[str, int]) -> None:
        self._own = processes
        self._cpu, self._began = self._all_cpu(), time.monotonic()

    def since(self) -> dict[str, float]:
        """Return percent of one core since the beginning, and MB now."""
        seconds, cpu = time.monotonic() - self._began, self._all_cpu()
        used = {f"{name}_cpu": 100 * (cpu[name] - self._cpu[name]) / seconds for name in self._own}
        memory = {f"{name}_mb": memory_mb(pid) for name, pid in self._own.items()}
        return used | memory

    def _all_cpu(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) for name, pid in self._own.items()}


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process and its descendants have used; of this process, only its own."""
    return sum(map(_cpu, _below(pid)))


def memory_mb(pid: int) -> float:
    """Return the memory of a process and its descendants in MB, shared pages counted once; of this process, its own."""
    return sum(map(_memory, _below(pid)))


def descriptors(pid: int) -> int:
    """Return how many files and sockets a process and its descendants have open."""
    return sum(map(_descriptors, _below(pid)))


def _below(pid: int) -> list[int]:
    """Return the process and its descendants; of this process only itself, because the others are its children."""
    if pid == os.getpid():
        return [pid]
    parents = {int(entry.name): _parent(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["0"] * 20


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _cpu(pid: int) -> float:
    """Return the CPU seconds of a process, including its children that have ended."""
    return sum(map(int, _stat(pid)[11:15])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000


def _descriptors(pid: int) -> int:
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0
