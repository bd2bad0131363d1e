"""`python -m tests.crash`: kill the worker before and after every commit, and check what must hold."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tests.environment  # noqa: F401 - a data folder of this run's own, before the settings are read

POINTS = {"every": 1, "third": 3}


def main() -> int:
    options = _options()
    os.environ["DJANGO_SETTINGS_MODULE"] = "agentsite.settings"
    os.environ.pop("DATABASE_URL", None)
    from tests.crash.settings import SETTINGS

    os.environ.update(SETTINGS)
    import django

    django.setup()
    failed = [_matrix(kind, options) for kind in options.database]
    return int(any(failed))


def _matrix(kind: str, options: argparse.Namespace) -> bool:
    """Walk one kind of database and print its table; whether anything did not hold."""
    from tests.crash import databases, matrix
    from tests.crash.scenarios import SCENARIOS
    from tests.crash.table import Table

    share = matrix.Share(POINTS[options.points], options.offset % POINTS[options.points])
    scenarios = [SCENARIOS[name] for name in options.scenario]
    table = Table(kind, share)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="agentsite-crash-") as folder:
        source = databases.databases(kind, Path(folder), str(os.getpid()))
        try:
            for walked in matrix.walked(Path(folder), source, scenarios, share, side_by_side=options.processes):
                table.add(walked)
        finally:
            source.close()
    sys.stdout.write(table.text(time.monotonic() - began))
    sys.stdout.flush()
    return table.failed


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--database", action="append", choices=["sqlite", "postgres"])
    parser.add_argument("--scenario", action="append", choices=["S99", "mixed"])
    parser.add_argument("--points", choices=POINTS, default="every")
    parser.add_argument("--offset", type=int, default=_commit(), help="where `third` begins; by default by the commit")
    parser.add_argument("--processes", type=int, default=4, help="runs at a time")
    options = parser.parse_args()
    options.database = options.database or ["sqlite", "postgres"]
    options.scenario = options.scenario or ["S99", "mixed"]
    return options


def _commit() -> int:
    """A number that changes from commit to commit; 0 where git does not know one."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
        return int(done.stdout.strip()[:8], 16)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return 0


if __name__ == "__main__":
    sys.exit(main())
