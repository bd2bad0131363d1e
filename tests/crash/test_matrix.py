"""A third of the crash matrix, another one at each commit; `python -m tests.crash` walks all of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.crash.workers import ROOT


@pytest.mark.crash
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_turn_survives_a_kill_at_every_point(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    """CP03..CP27, T-01, T-20: it ends, nothing is done twice, and its ledger is as if nothing had happened."""
    command = [sys.executable, "-m", "tests.crash", "--database", database, "--points", "third"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    with capsys.disabled():
        sys.stdout.write(f"\n{done.stdout}")
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
