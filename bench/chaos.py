"""Chaos: turns with side effects, started over the API, while workers, web server, model and database are cut off.

    python -m bench.chaos --turns 1000

Prints how many turns ended how, how often what was cut off, how many effects there were, how long turns whose worker
was lost took until another had them, and every violation: a call that was done twice, a ledger that does not verify, a
turn that failed. Exits with 1 if there is any. All times are those that a site has when nobody sets them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.processes import free_port

TIMES = {
    "AGENTSITE_LEASE_SECONDS": "30",
    "AGENTSITE_RENEW_SECONDS": "5",
    "AGENTSITE_SWEEP_SECONDS": "10",
    "AGENTSITE_BEAT_SECONDS": "30",
    "AGENTSITE_PROMPTS_AT_ONCE": "1000",
}
CUTS = ("drain", "drain", "worker", "stop the worker", "web", "model", "database")
"""What is cut off: the process that runs turns most often."""
BUSY_SECONDS = 3600
"""The longest that other work keeps the machine busy."""
KINDS = ("count", "talk", "take long", "write")
"""What is asked for: effects that wait for a person, that come after a long text, that take long, and a file."""
WRITTEN_LINES = 2_000
"""16 KB in 2,000 events: with megabytes, two cores do nothing but read them, and no turn ends between two kills."""
OUTAGE_SECONDS = 3.0
RESUMED_SECONDS = 45.0
"""The longest that a turn may take from the loss of its worker until another has it (I2)."""


@dataclass(frozen=True)
class Wait:
    """How long a turn that lost its worker waited for another, and what happened meanwhile."""

    prompt: int
    seconds: float
    meanwhile: Counter[str]

    def __str__(self) -> str:
        counts = ", ".join(f"{what} {times}" for what, times in sorted(self.meanwhile.items()))
        return f"turn {self.prompt} waited {self.seconds:.0f} s for a worker; meanwhile: {counts or 'nothing'}"


@dataclass
class Told:
    """What happened so far, and when, by the monotonic clock."""

    cut: Counter[str] = field(default_factory=Counter)
    waits: list[Wait] = field(default_factory=list)
    lost: dict[int, tuple[int, float]] = field(default_factory=dict)  # turn -> its fence, and when it lost its worker
    fences: dict[int, int] = field(default_factory=dict)  # turn -> its fence when it was last looked at
    events: list[tuple[float, str]] = field(default_factory=list)

    def note(self, what: str) -> None:
        """Note that this happened."""
        self.events.append((time.monotonic(), what))

    def claimed(self, prompt: int, strikes: int) -> None:
        """Note that a worker has this turn now; if it had lost another, that is the end of its wait."""
        if prompt in self.lost:
            since = self.lost.pop(prompt)[1]
            meanwhile = Counter(what for at, what in self.events if at > since)
            self.waits.append(Wait(prompt, time.monotonic() - since, meanwhile))
        self.note(f"claims with {strikes} strikes")


class Service:
    """A process that is started again whenever it ends, as a service manager does."""

    def __init__(self, site: Any, command: list[str], environment: dict[str, str]) -> None:
        self.site, self.command, self.environment = site, command, environment
        self.paused_until = 0.0
        self.start()

    def start(self) -> None:
        """Start it now."""
        with self.site.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, env=self.environment, stdout=log, stderr=log)

    def tend(self) -> None:
        """Start it again if it has ended, and its pause is over."""
        if self.process.poll() is not None and time.monotonic() > self.paused_until:
            self.start()

    def end(self, number: signal.Signals = signal.SIGKILL, pause_seconds: float = 1.0) -> None:
        """Send it this signal; it starts again after the pause, if it has ended by then."""
        self.paused_until = time.monotonic() + pause_seconds
        self.process.send_signal(number)


class Chaos:
    """A site under attack."""

    def __init__(self, site: Any, model: Service, database: str, cuts: Sequence[str], seed: int) -> None:
        self.site, self.model, self.database, self.random = site, model, database, random.Random(seed)
        self.cuts = cuts
        self.port, self.told = free_port(), Told()
        environment = site.environment(**TIMES, PORT=str(self.port), CRASH_KEYS=str(site.folder / "keys"))
        self.worker = Service(site, [sys.executable, "manage.py", "worker"], environment)
        self.web = Service(site, [sys.executable, "-m", "agentsite.web"], environment)
        self.key, self.talks = self._prepare(), dict[int, tuple[int, str]]()
        self.running: set[int] = set()

    def _prepare(self) -> str:
        from conversations.accounts.keys import make_key

        return make_key(self.site.person(), "chaos", ["read", "chat", "decide"])[1]

    # Turns

    def start_one(self, number: int) -> bool:
        """Start a turn over the API; False if the site did not answer. Sent again, it is the same turn."""
        from conversations.prompts.start import start_conversation

        if number not in self.talks:
            self.talks[number] = start_conversation(self.site.person()).pk, self.random.choice(KINDS)
        talk, kind = self.talks[number]
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/conversations/{talk}/prompts/",
            json.dumps({"input": kind, "model": "normal"}).encode(),
            {
                "Authorization": f"Bearer {self.key}",
                "Content-Type": "application/json",
                "Idempotency-Key": f"n{number}",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                self.running.add(json.load(response)["id"])
                return True
        except urllib.error.HTTPError as refused:
            if refused.code in (429, 500, 502, 503):
                return False
            raise SystemExit(f"{refused.code}: {refused.read().decode()}") from refused
        except OSError:
            return False

    def look(self) -> None:
        """Decide what waits, forget what has ended, and note which turns have a worker again."""
        from conversations.models import Output, Prompt

        for output in Output.objects.filter(prompt__in=self.running).pending():
            self.site.decide(output, "it_did_not" if output.ask == "interrupted" else "approve")
        rows = Prompt.objects.filter(pk__in=self.running).order_by("claimed_at")
        for pk, fence, strikes, ended in rows.values_list("pk", "fence", "strikes", "ended_at"):
            if fence > self.told.fences.get(pk, 0):
                self.told.claimed(pk, strikes)
            self.told.fences[pk] = fence
            if ended:
                self.told.lost.pop(pk, None)
                self.running.discard(pk)

    # Attacks

    def cut(self) -> None:
        """Cut something off."""
        what = self.random.choice(self.cuts)
        if what in ("drain", "worker"):
            self._note_lost()
        if what == "drain":
            self._kill_drain()
        elif what == "worker":
            self._kill_worker()
        elif what == "stop the worker":
            self.worker.end(signal.SIGTERM)
        elif what == "web":
            self.web.end()
        elif what == "model":
            self.model.end(pause_seconds=OUTAGE_SECONDS)
        else:
            threading.Thread(target=self._outage, daemon=True).start()
        self.told.cut[what] += 1
        self.told.note(f"cuts of {what}")

    def _note_lost(self) -> None:
        from conversations.database.sql import database_time
        from conversations.models import Prompt

        held = Prompt.objects.filter(pk__in=self.running, lease_until__gt=database_time())
        for pk, fence in held.values_list("pk", "fence"):
            self.told.lost.setdefault(pk, (fence, time.monotonic()))

    def _kill_drain(self) -> None:
        from conversations.models import Prompt

        names = Prompt.objects.filter(pk__in=self.told.lost).values_list("worker", flat=True).distinct()
        for name in names:
            with suppress(ValueError, ProcessLookupError, AssertionError):
                self._kill(int(name.rpartition("/")[2]))

    def _kill_worker(self) -> None:
        """The worker with all that it started, as when the machine goes away."""
        from tests.crash.processes import alive

        apart = {self.web.process.pid, self.model.process.pid}
        for pid in alive(self.site):
            if pid not in apart:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _kill(self, pid: int) -> None:
        from tests.crash.processes import kill

        kill(self.site, pid)

    def _outage(self) -> None:
        """Nobody can write for some seconds; on PostgreSQL everybody is disconnected."""
        if self.database == "sqlite":
            import sqlite3

            file = self.site.url.removeprefix("sqlite:///")
            with closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as database:
                database.execute("BEGIN IMMEDIATE")
                time.sleep(OUTAGE_SECONDS)
            return
        import psycopg

        from tests.crash.databases import server

        name = self.site.url.rpartition("/")[2]
        with psycopg.connect(server(), autocommit=True) as monkey:
            monkey.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            monkey.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            time.sleep(OUTAGE_SECONDS)
            monkey.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")

    # All of it

    def run(self, turns: int, at_once: int, pause_seconds: float) -> None:
        """Run so many turns, so many at once; something is cut off every so many seconds, on average."""
        from django.db import Error, connection

        started, next_cut = 0, time.monotonic() + 15
        while started < turns or self.running:
            try:
                for service in (self.worker, self.web, self.model):
                    service.tend()
                while started < turns and len(self.running) < at_once and self.start_one(started):
                    started += 1
                self.look()
                if started < turns and time.monotonic() > next_cut:
                    next_cut = time.monotonic() + self.random.expovariate(1 / pause_seconds)
                    self.cut()
            except Error:
                connection.close()
            time.sleep(0.2)

    def end(self) -> None:
        """End all processes of the site."""
        from tests.crash.processes import kill_all

        self.worker.end(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.worker.process.wait(60)
        for service in (self.web, self.model):
            service.end()
            service.process.wait()
        kill_all(self.site)

    def violations(self) -> list[str]:
        """Return everything that must not have happened."""
        from conversations.models import Prompt
        from conversations.verification.stored import verify

        keys = self.site.folder / "keys"
        done = Counter(keys.read_text().splitlines() if keys.exists() else [])
        found = [f"the call with the key {key} was done {times} times" for key, times in done.items() if times > 1]
        for prompt in Prompt.objects.all():
            if (prompt.state, prompt.stop_reason) != ("completed", "text"):
                found.append(f"turn {prompt.pk} ended as {prompt.state} ({prompt.stop_reason})")
            found += map(str, verify(prompt.conversation_id).problems)
        return found + [str(wait) for wait in self.told.waits if wait.seconds > RESUMED_SECONDS]

    def report(self, took: float) -> str:
        """Return the figures."""
        from conversations.models import Output, Prompt

        ends = Counter(Prompt.objects.values_list("stop_reason", flat=True))
        cards = Output.objects.filter(ask="interrupted").count()
        waits = [wait.seconds for wait in self.told.waits] or [0.0]
        middle, longest = statistics.median(waits), max(waits)
        effects = sum(self.site.effects().values())
        return "\n".join([
            f"{self.database}: {ends.total()} turns in {took / 60:.0f} min, load {os.getloadavg()[1]:.1f}",
            f"  ended            {dict(ends)}",
            f"  cut off          {sum(self.told.cut.values())} times: {dict(self.told.cut)}",
            f"  effects          {effects}, and {cards} cards about what may have happened",
            f"  lost to resumed  {len(self.told.waits)} times, median {middle:.1f} s, longest {longest:.1f} s",
        ])  # fmt: skip


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep the machine busy with so many processes until the end of the block."""
    code = f"import time\nover = time.monotonic() + {BUSY_SECONDS}\nwhile time.monotonic() < over: pass"
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def main() -> int:
    """Run it and print the figures and the violations."""
    parser = argparse.ArgumentParser(prog="python -m bench.chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--pause", type=float, default=20, metavar="SECONDS", help="between two attacks, on average")
    parser.add_argument("--cut", nargs="+", choices=sorted(set(CUTS)), default=CUTS, help="what is cut off")
    parser.add_argument("--busy", type=int, default=0, metavar="PROCESSES", help="so many others use the processors")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # end what was started, too
    import tests.environment  # noqa: F401 - a data folder of this run's own, before the settings are read
    from tests.crash.settings import SETTINGS

    os.environ |= SETTINGS | TIMES | {"DJANGO_SETTINGS_MODULE": "agentsite.settings"}
    os.environ.pop("DATABASE_URL", None)
    import django

    django.setup()
    from tests.crash import databases
    from tests.crash.model import Model
    from tests.crash.scenarios import says
    from tests.crash.site import fresh
    from tests.crash.turns import TURNS

    with tempfile.TemporaryDirectory(prefix="agentsite-chaos-") as folder:
        home, port = Path(folder), free_port()
        script = home / "script"
        write = says("I write.", ("files_write", {"path": "notes.txt", "content": "A line.\n" * WRITTEN_LINES}))
        script.write_text(json.dumps(TURNS | {"write": [write, says("Done.")]}))
        command = [sys.executable, "-m", "tests.wire", f"--port={port}", f"--script={script}"]
        source = databases.databases(options.database, home, f"chaos_{os.getpid()}")
        try:
            model = Model(f"http://127.0.0.1:{port}/v1", home / "log")
            with busy(options.busy), fresh(f"chaos{os.getpid()}", home, source, model) as site:
                service = Service(site, command, dict(os.environ))
                chaos = Chaos(site, service, options.database, options.cut, options.seed)
                began = time.monotonic()
                try:
                    chaos.run(options.turns, options.at_once, options.pause)
                finally:
                    chaos.end()
                found = chaos.violations()
                sys.stdout.write(f"{chaos.report(time.monotonic() - began)}\n  violations       {len(found)}\n")
                sys.stdout.writelines(f"    {each}\n" for each in found[:50])
        finally:
            source.close()
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
