"""Shared parts of the benchmarks: a database of their own, the scripted server in a process of its own, and tables."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
POSTGRES = os.environ.get("BENCH_POSTGRES_URL", "postgres://postgres@127.0.0.1:5432")


@contextmanager
def server(rounds: list[Any] | dict[str, list[Any]]) -> Iterator[str]:
    """The scripted wire server in a process of its own, answering these rounds, of all turns or by what a user says;
    yields its base URL.
    """
    with tempfile.TemporaryDirectory() as folder:
        script, port = Path(folder) / "script.json", Path(folder) / "port"
        script.write_text(json.dumps(rounds))
        command = [sys.executable, "-m", "tests.wire", "--port", "0", "--port-file", str(port)]
        process = subprocess.Popen([*command, "--script", str(script)], cwd=ROOT)
        try:
            while not port.exists():
                if process.poll() is not None:
                    raise SystemExit("The scripted server did not start.")
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port.read_text().strip()}/v1"
        finally:
            process.terminate()
            process.wait()


@contextmanager
def site(database: str, base_url: str, **settings: str) -> Iterator[None]:
    """Django set up on a fresh database (`sqlite` or `postgres`), with the benchmarks' tools and this model server.

    Once per process: settings cannot be changed afterwards.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if database == "postgres":
            settings["DATABASE_URL"] = stack.enter_context(postgres())
        own = {
            "DJANGO_SETTINGS_MODULE": "agentsite.settings",
            "AGENTSITE_DATA": folder,
            "AGENTSITE_APPS": "bench",
            "OPENAI_BASE_URL": base_url,
            "OPENAI_API_KEY": "bench",
            "LOG_LEVEL": "WARNING",
        }
        os.environ.update(own | settings)
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connections

        call_command("migrate", verbosity=0)
        try:
            yield
        finally:
            connections.close_all()


@contextmanager
def postgres() -> Iterator[str]:
    """A fresh PostgreSQL database until the end of the block, at most one for each process. Yields its address."""
    name = f"bench_{os.getpid()}"
    _psql(f"CREATE DATABASE {name}")
    try:
        yield f"{POSTGRES}/{name}"
    finally:
        _psql(f"DROP DATABASE {name} WITH (FORCE)")


def _psql(statement: str) -> None:
    import psycopg

    with psycopg.connect(f"{POSTGRES}/postgres", autocommit=True) as connection:
        connection.execute(statement.encode())


def on_databases(
    parser: argparse.ArgumentParser, module: str, measure: Callable[[argparse.Namespace], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Measure on each requested database, each in a process of its own with the same options. Returns the figures.

    In such a process (`--json`) the figures are printed as JSON, and the command ends.
    """
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--json", action="store_true", help="print only the figures of one database, as JSON")
    options = parser.parse_args()
    if options.json:
        json.dump(measure(options), sys.stdout)
        raise SystemExit(0)
    databases = ("sqlite", "postgres") if options.database == "both" else (options.database,)
    own = {name: value for name, value in vars(options).items() if name not in ("database", "json")}
    passed_on = [f"--{name.replace('_', '-')}={value}" for name, value in own.items()]
    return [in_own_process(module, database, passed_on) for database in databases]


def in_own_process(module: str, database: str, arguments: Sequence[str]) -> Any:
    """Run `python -m module --database X --json ...` and return what it prints as JSON."""
    command = [sys.executable, "-m", module, "--database", database, "--json", *arguments]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout.splitlines()[-1])  # above it stands what its processes said


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table as text, with right-aligned columns as wide as their widest cell."""
    cells = [list(head), *([f"{c:.2f}" if isinstance(c, float) else str(c) for c in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def person(name: str = "bench") -> Any:
    """Return a user who owns conversations."""
    from django.contrib.auth.models import User

    return User.objects.get_or_create(username=name)[0]


def new_drain() -> Any:
    """Return the one drain of a new host, as a worker process would start it."""
    from django.conf import settings

    from conversations.database.plans import keep_plans
    from conversations.worker.garbage import collect_seldom
    from tests.idle import new_drain

    keep_plans()
    collect_seldom()
    settings.AGENTSITE_DRAINS = 1  # else half of all turns would wait for the other
    return new_drain("bench")


async def drained() -> int:
    """Run a drain until there is nothing to do; return how many turns it ran."""
    from asgiref.sync import sync_to_async

    from tests.idle import until_idle

    return await until_idle(await sync_to_async(new_drain)())
