"""The child processes that draw: bounded in time, memory and number, started again, and gone with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

import pytest

from conversations.pictures.child import MEMORY
from conversations.pictures.children import CHILDREN, ROOT, Busy, Children, Stopped
from conversations.pictures.mermaid import NotDrawn
from tests.agentsite.processes import wait_for
from tests.conversations.pictures.corpus import BOMBS, ENDLESS

PLAIN = "flowchart LR\n A-->B"
SECONDS = 30.0
"""Longer than anything here takes on a busy machine."""


@pytest.fixture
def children() -> Iterator[Children]:
    children = Children()
    yield children
    children.close()


def outcome(drawn: Future[str]) -> str:
    """Return what came of it: "drawn", or the reason."""
    try:
        drawn.result(SECONDS)
    except NotDrawn as refused:
        return str(refused)
    return "drawn"


def status(pid: int, field: str) -> int:
    """Return a figure of a process from /proc, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def is_gone(pid: int) -> bool:
    """Whether a process has ended: a zombie, which nobody waits for, has."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def test_no_child_before_the_first_drawing(children: Children) -> None:
    assert children.pids == []
    assert outcome(children.draw(PLAIN, "light")) == "drawn"
    assert 1 <= len(children.pids) <= CHILDREN


@pytest.mark.parametrize("name", BOMBS)
def test_hostile_diagrams_end_in_time_and_memory(name: str) -> None:
    """They are drawn or refused, in words, and the next diagram is drawn."""
    children = Children(count=1, seconds=2)
    try:
        assert outcome(children.draw(PLAIN, "light")) == "drawn"
        began, (pid,) = time.monotonic(), children.pids
        came = outcome(children.draw(BOMBS[name], "light"))
        assert time.monotonic() - began < 2 + 2  # a machine that tests is busy
        if children.pids == [pid]:
            assert status(pid, "VmPeak") <= MEMORY
        assert came == "drawn" or came.endswith(".")
        assert not any(word in came for word in ("panicked", ".rs", "/", "Traceback", "max_"))
        assert outcome(children.draw(PLAIN, "dark")) == "drawn"
    finally:
        children.close()


def test_a_drawing_that_takes_too_long_ends_its_child() -> None:
    children = Children(count=1, seconds=1)
    try:
        outcome(children.draw(PLAIN, "light"))
        (pid,) = children.pids
        endless = children.draw(ENDLESS, "light")
        with pytest.raises(Stopped, match="took longer than 1 second"):
            endless.result(SECONDS)
        assert is_gone(pid)
        assert outcome(children.draw(PLAIN, "light")) == "drawn"
        assert children.pids != [pid]
    finally:
        children.close()


def test_a_child_that_needs_too_much_memory_ends_alone(children: Children) -> None:
    """Its limit is the kernel's: what cannot be allocated fails, whoever asks for it."""
    outcome(children.draw(PLAIN, "light"))
    limits = {Path(f"/proc/{pid}/limits").read_text() for pid in children.pids}
    assert all(f"Max address space         {MEMORY}" in limit for limit in limits)
    assert all("Max file size             0" in limit for limit in limits)
    code = f"import resource as r; r.setrlimit(r.RLIMIT_AS, ({MEMORY},) * 2); bytearray({MEMORY})"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode != 0


def test_a_killed_child_is_started_again(children: Children) -> None:
    outcome(children.draw(PLAIN, "light"))
    killed = children.pids
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: all(map(is_gone, killed)))
    assert [outcome(children.draw(PLAIN, theme)) for theme in ("light", "dark")] == ["drawn", "drawn"]
    assert not set(killed) & set(children.pids)


def test_a_child_killed_while_it_draws(children: Children) -> None:
    """Whoever waits is told so."""
    outcome(children.draw(PLAIN, "light"))
    endless = children.draw(ENDLESS, "light")
    wait_for(endless.running)
    killed = children.pids
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: all(map(is_gone, killed)))
    assert outcome(endless) == "Drawing failed. The diagram may be too large."
    assert outcome(children.draw(PLAIN, "light")) == "drawn"


def test_too_many_drawings_are_refused() -> None:
    """Rather than let everybody wait for minutes."""
    children = Children(count=1, seconds=1, waiting_most=2)
    try:
        first = children.draw(ENDLESS, "light")
        wait_for(first.running)
        waiting = [children.draw(PLAIN, "light") for _ in range(2)]
        with pytest.raises(Busy):
            children.draw(PLAIN, "light")
        assert [outcome(each) for each in waiting] == ["drawn", "drawn"]
        assert outcome(children.draw(PLAIN, "light")) == "drawn"
    finally:
        children.close()


def test_an_idle_child_ends() -> None:
    children = Children(count=1, idle=0.2)
    try:
        outcome(children.draw(PLAIN, "light"))
        wait_for(lambda: children.pids == [])
        assert outcome(children.draw(PLAIN, "light")) == "drawn"
    finally:
        children.close()


def test_closing_ends_everything() -> None:
    children = Children(count=1)
    endless, waiting = children.draw(ENDLESS, "light"), children.draw(PLAIN, "light")
    wait_for(lambda: bool(children.pids))
    pids = children.pids
    children.close()
    assert {outcome(endless), outcome(waiting)} == {"Drawing failed. The diagram may be too large."}
    assert all(map(is_gone, pids))
    assert children.pids == []
    with pytest.raises(Busy):
        children.draw(PLAIN, "light")


def test_a_child_knows_no_secret(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets no variable of the site, and no connection."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    outcome(children.draw(PLAIN, "light"))
    for pid in children.pids:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert {variable.partition(b"=")[0] for variable in variables} <= {b"", b"PATH", b"LD_LIBRARY_PATH"}
        targets = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
        assert all(target.startswith(("socket:", "/dev/null", "/proc")) for target in targets), targets
        assert sum(target.startswith("socket:") for target in targets) == 2  # one, as input and output


PARENT = """
import os, sys, time
from conversations.pictures.children import Children
children = Children()
children.draw("flowchart LR\\n A-->B", "light").result(30)
endless = children.draw({endless!r}, "light")
while not endless.running() or len(children.pids) < 1:
    time.sleep(0.01)
print(*children.pids, flush=True)
{end}
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("sys.exit(0)", 0),
        ("os._exit(0)", 0),
        ("time.sleep(60)", -signal.SIGTERM),
        ("time.sleep(60)", -signal.SIGKILL),
    ],
)
def test_no_child_outlives_its_parent(end: str, code: int) -> None:
    """However that ends, also while one draws without end. Neither does the parent wait for it."""
    program = PARENT.format(endless=ENDLESS, end=end)
    command, pipe = [sys.executable, "-W", "error", "-c", program], subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as parent:
        assert parent.stdout
        assert parent.stderr
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        if code < 0:
            parent.send_signal(-code)
        assert parent.wait(SECONDS) == code
        assert parent.stderr.read() == ""
    assert pids
    wait_for(lambda: all(map(is_gone, pids)))
