"""A soak: turns at a steady rate, for as long as one likes. What a site holds must not grow with what it has done.

Real processes: web (`python -m agentsite.web`), worker (`manage.py worker`), and the scripted model of `bench.peers`.
People send messages over the API, each in a new conversation, and open the page of the one before. Every minute there
is a line: turns that ended and turns that are open; of web and worker the memory in MB (shared pages counted once) and
the open files and sockets; and of the database the MB of its log (WAL), on PostgreSQL also its connections and dead
rows.

At the end it says of each whether it is flat: the median of the last quarter is at most a twentieth above that of the
third one, or hardly above it. Exits with 1 if one is not. The first half is for warming up: at two turns a second, the
HTML cache of the web process is full after a quarter of an hour. Dead rows count only if the server vacuums by itself.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import support
from bench.peers.task import task
from bench.processes import await_answer, descriptors, free_port, memory_mb, started

PEOPLE = 20
GROWTH = 1.05
"""How many times as much there may be in the end."""
SLACK = {"mb": 4.0, "files": 12, "connections": 2, "dead rows": 5_000, "log mb": 32.0, "open": 10}
"""How much more is hardly more, by how a column's name ends. The process that django-q2 puts in the place of one that
ran 500 tasks has some ten files more, those of its siblings; the one after that has no more.
"""
SETTINGS = {"AGENTSITE_MODEL_API": "chat", "AGENTSITE_MAX_ROUNDS": "100"}
Line = dict[str, float]


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run the soak on one database. Returns the lines, one for each minute, which it prints as well."""
    model_port, port = free_port(), free_port()
    with (
        started("-m", "bench.peers.model", f"--port={model_port}"),
        support.site(options.database, f"http://127.0.0.1:{model_port}/v1", PORT=str(port), **SETTINGS),
        started("-m", "agentsite.web") as web,
        started("manage.py", "worker") as worker,
    ):
        await_answer(f"http://127.0.0.1:{port}/healthz")
        processes = {"web": web, "worker": worker}
        load = _load(f"http://127.0.0.1:{port}", task(options.rounds, delay_ms=options.latency))
        lines: list[Line] = []
        began = time.monotonic()
        for number in range(round(options.minutes * 60 * options.rate)):
            time.sleep(max(0.0, began + number / options.rate - time.monotonic()))
            next(load)
            if time.monotonic() - began >= (len(lines) + 1) * options.every:
                lines.append(_line(processes))
                _say(options.database, lines)
        return {"lines": lines}


def _load(origin: str, said: str) -> Iterator[None]:
    """Send a message whenever the next one is asked for, and open the page of the one before by the same person."""
    from conversations.accounts.keys import make_key
    from conversations.prompts.start import start_conversation

    people = [support.person(f"person{number}") for number in range(PEOPLE)]
    keys = [make_key(person, "soak", ["read", "chat"])[1] for person in people]
    cookies, talks = [_cookie(person) for person in people], dict[int, int]()
    while True:
        for number, person in enumerate(people):
            if number in talks:
                _ask(f"{origin}/c/{talks[number]}/", {"Cookie": cookies[number]})
            talks[number] = start_conversation(person).pk
            headers = {"Authorization": f"Bearer {keys[number]}", "Content-Type": "application/json"}
            body = json.dumps({"input": said}).encode()
            _ask(f"{origin}/api/conversations/{talks[number]}/prompts/", headers, body)
            yield


def _ask(address: str, headers: dict[str, str], body: bytes | None = None) -> None:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=60) as answer:
            answer.read()
    except urllib.error.HTTPError as refused:
        raise SystemExit(f"{address}: {refused.code} {refused.read().decode()[:500]}") from refused


def _cookie(person: Any) -> str:
    from django.test import Client

    client = Client()
    client.force_login(person)
    return f"sessionid={client.cookies['sessionid'].value}"


def _line(processes: dict[str, int]) -> Line:
    from conversations.models import Prompt
    from conversations.models.prompt import OPEN

    line: Line = {"ended": Prompt.objects.ended().count(), "open": Prompt.objects.filter(state__in=OPEN).count()}
    for name, pid in processes.items():
        line |= {f"{name} mb": memory_mb(pid), f"{name} files": descriptors(pid)}
    return line | _database()


def _database() -> Line:
    from django.conf import settings
    from django.db import connection

    if connection.vendor != "postgresql":
        log = Path(f"{settings.DATABASES['default']['NAME']}-wal")
        return {"log mb": log.stat().st_size / 1e6 if log.exists() else 0.0}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()),"
            " (SELECT sum(n_dead_tup) FROM pg_stat_user_tables), (SELECT sum(size) / 1e6 FROM pg_ls_waldir()),"
            " current_setting('autovacuum')"
        )
        connections, dead, log_mb, vacuums = cursor.fetchone()
    line: Line = {"connections": connections, "log mb": float(log_mb)}
    return line | ({"dead rows": int(dead)} if vacuums == "on" else {})


def _say(database: str, lines: Sequence[Line]) -> None:
    if len(lines) == 1:
        print(f"{database:>8} " + " ".join(f"{name:>12}" for name in lines[0]), file=sys.stderr)
    print(f"{len(lines):>8} " + " ".join(f"{value:>12.1f}" for value in lines[-1].values()), file=sys.stderr)


def _verdict(lines: Sequence[Line]) -> list[tuple[str, float, float, bool]]:
    """Return each column but the count of turns, with the medians of its third and last quarter, and if it is flat."""
    quarter = max(1, len(lines) // 4)
    found = []
    third, last = lines[-2 * quarter : -quarter], lines[-quarter:]
    for name in (name for name in lines[0] if name != "ended"):
        before, after = (statistics.median(line[name] for line in some) for some in (third, last))
        slack = next(most for end, most in SLACK.items() if name.endswith(end))
        found.append((name, before, after, after <= max(before * GROWTH, before + slack)))
    return found


def grown(lines: Sequence[Line]) -> list[str]:
    """Return the names of the columns that are not flat."""
    return [name for name, _, _, flat in _verdict(lines) if not flat]


def main() -> None:
    """Soak both databases, one after the other, and say what grew."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30, help="how long, on each database")
    parser.add_argument("--rate", type=float, default=2, help="turns a second")
    parser.add_argument("--rounds", type=int, default=3, help="of each turn")
    parser.add_argument("--latency", type=int, default=500, help="milliseconds of the model")
    parser.add_argument("--every", type=float, default=60, help="seconds between two lines")
    flat = True
    for found in support.on_databases(parser, "bench.soak", measure):
        lines = found["lines"]
        if len(lines) < 4:
            raise SystemExit("That was too short to say what grows: there must be four lines.")
        print(support.table(["", "third quarter", "last quarter", "flat"], [list(each) for each in _verdict(lines)]))
        flat = flat and not grown(lines)
    sys.exit(not flat)


if __name__ == "__main__":
    main()
