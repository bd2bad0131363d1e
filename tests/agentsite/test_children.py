import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from conversations.worker.children import Child, Family
from tests.agentsite.processes import ROOT, started, wait_for

# A program that says it runs by a line in the file it is given, and then waits for ever.
WAITS = "import signal, sys; open(sys.argv[1], 'a').write('x\\n'); signal.pause()"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + WAITS
# A parent with one such child, which writes the child's process id.
PARENT = """
import sys
from pathlib import Path
from conversations.worker.children import Child, Family
family = Family()
with family.watching():
    child = family.add(Child("child", [sys.executable, "-c", sys.argv[1], sys.argv[2]], Path()))
    Path(sys.argv[3]).write_text(str(child._process.pid))
    family.tend()
    sys.exit(0 if family.stop(30) else 3)
"""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A file with a line for each start of a child."""
    return tmp_path / "runs"


@pytest.fixture
def family() -> Iterator[Family]:
    family = Family()
    with family.watching():
        yield family
        family.signals = 2  # in a hurry
        family.stop(0)


def starts(runs: Path) -> int:
    return len(runs.read_text().splitlines()) if runs.exists() else 0


def alive(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def test_it_starts_a_dead_child_again_after_a_pause(family: Family, runs: Path) -> None:
    child = family.add(
        Child("child", [sys.executable, "-c", "open(__import__('sys').argv[1], 'a').write('x\\n')", str(runs)], ROOT)
    )
    wait_for(lambda: not child.running)
    pause = child.tend()
    assert pause is not None
    assert 0 < pause <= 0.5
    wait_for(lambda: child.tend() is None)
    wait_for(lambda: starts(runs) == 2)
    wait_for(lambda: not child.running)
    second = child.tend()
    assert second is not None
    assert 0.5 < second <= 1  # doubled


def test_one_signal_ends_the_children_by_themselves(family: Family, runs: Path) -> None:
    child = family.add(Child("child", [sys.executable, "-c", WAITS, str(runs)], ROOT))
    wait_for(lambda: starts(runs))
    os.kill(os.getpid(), signal.SIGINT)
    family.tend()
    assert family.stop(patience_seconds=30)
    assert not child.running


def test_a_second_signal_cuts_off_a_child_that_does_not_end(family: Family, runs: Path) -> None:
    child = family.add(Child("child", [sys.executable, "-c", STUBBORN, str(runs)], ROOT))
    wait_for(lambda: starts(runs))
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    assert not family.stop(patience_seconds=3600)
    assert not child.running


def test_patience_ends_with_the_whole_group(family: Family, runs: Path) -> None:
    spawns = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {WAITS!r}, sys.argv[1]]); " + STUBBORN
    child = family.add(Child("child", [sys.executable, "-c", spawns, str(runs)], ROOT))
    wait_for(lambda: starts(runs) == 2)
    group = child._process.pid if child._process else 0
    assert not family.stop(patience_seconds=0)

    def nobody() -> bool:
        with suppress(ProcessLookupError):
            os.killpg(group, 0)
            return False
        return True

    wait_for(nobody)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
def test_a_killed_parent_leaves_no_child(tmp_path: Path, runs: Path) -> None:
    file = tmp_path / "pid"
    arguments = ("-c", PARENT, WAITS, str(runs), str(file))
    with started(*arguments, environment=dict(os.environ), log=tmp_path / "log") as parent:
        wait_for(lambda: starts(runs))
        parent.kill()
        parent.wait()
    wait_for(lambda: not alive(int(file.read_text())))
