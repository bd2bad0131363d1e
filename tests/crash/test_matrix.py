"""Part of the crash matrix, a different one at each commit. `python -m tests.crash` walks all of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.budget import share
from tests.crash.workers import ROOT

EVERY = {"kill": 5, "stop": 9}
"""One point in so many is walked, so that it takes a minute or two."""
PAIRS = [(database, how) for database in ("sqlite", "postgres") for how in EVERY]
"""One of these is walked for each commit."""


@pytest.mark.crash
@pytest.mark.parametrize(("database", "how"), share(PAIRS, of=4))
def test_a_turn_survives_at_every_point(database: str, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    """CP03..CP27, T-01, T-20, T-23: it ends, nothing is done twice, and its ledger is as if nothing had happened."""
    options = [f"--database={database}", f"--how={how}", f"--every={EVERY[how]}"]
    command = [sys.executable, "-m", "tests.crash", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    with capsys.disabled():
        sys.stdout.write(f"\n{done.stdout}")
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
