"""`python -m tests.crash`: kill and stop the worker at every crash point, run the named tests, print the results."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import tests.environment  # noqa: F401 - a data folder of this run's own, before the settings are read
from tests.budget import commit_number

SCENARIO_NAMES = ["S99", "mixed", "policy", "workflow", "tools", "granted", "remembered"]


def main() -> int:
    options = _options()
    os.environ["DJANGO_SETTINGS_MODULE"] = "agentsite.settings"
    os.environ.pop("DATABASE_URL", None)
    from tests.crash.settings import SETTINGS

    os.environ.update(SETTINGS)
    import django

    django.setup()
    from tests.crash import named

    failed = [_matrix(kind, how, options) for kind in options.database for how in options.how]
    if options.tests:
        failed.append(named.run())
    return int(any(failed))


def _matrix(kind: str, how: str, options: argparse.Namespace) -> bool:
    """Walk the matrix on one kind of database in one way, and print its table; return whether anything failed."""
    from tests.crash import databases, matrix
    from tests.crash.scenarios import SCENARIOS
    from tests.crash.table import Table

    share = matrix.Share(how, options.every, options.offset % options.every)  # type: ignore[arg-type]
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
    parser.add_argument("--how", action="append", choices=["kill", "stop"])
    parser.add_argument("--scenario", action="append", choices=SCENARIO_NAMES)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="walk one point in N")
    parser.add_argument("--offset", type=int, default=commit_number(), help="with which; by default by the commit")
    parser.add_argument("--processes", type=int, default=4, help="runs at a time")
    parser.add_argument("--tests", action=argparse.BooleanOptionalAction, default=False, help="the named tests as well")
    options = parser.parse_args()
    whole = len(sys.argv) == 1
    options.tests = options.tests or whole
    options.database = options.database or ["sqlite", "postgres"]
    options.how = options.how or ["kill", "stop"]
    options.scenario = options.scenario or SCENARIO_NAMES
    return options


if __name__ == "__main__":
    sys.exit(main())
