"""Push in real processes: web server and worker are separate, without Redis, on the database of the test run."""

from __future__ import annotations

import http.client
import json
import os
import signal
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.agentsite.processes import connect as connect_to
from tests.agentsite.processes import free_port, processes_of, run, started, variables, wait_for
from tests.budget import NIGHTLY
from tests.conversations.listening import Transcript

pytestmark = pytest.mark.database  # the processes use the same kind of database as other tests

POSTGRES = os.environ.get("DATABASE_URL", "")
SECONDS = 600 if NIGHTLY else 10
"""How long the sockets of T-37 stay open."""
SOCKETS = 200
SILENT = 20
TURNS = {
    "Run it.": [
        {"text": "I will run it, and then again. " * 20, "pause_seconds": 0.02,
         "calls": [{"name": "files_list", "arguments": {}}]},
        {"text": "It is done. " * 20, "pause_seconds": 0.02},
    ],
    "*": [{"text": "Hello."}],
}  # fmt: skip
FILL = """
import django
django.setup()
from django.contrib.auth.models import User
from django.db import transaction
from tests.conversations.support import Story, says
with transaction.atomic():  # else the site's worker takes up the turn at once
    story = Story(User.objects.get())
    for number in range(10):
        story.asks_model()
        story.answers(*(says("x" * 400_000) for _ in range(10)))
    story.ends()
print(story.conversation.pk)
"""


@contextmanager
def own_database(name: str) -> Iterator[dict[str, str]]:
    """Return the environment for an empty database: a file in the data folder, or one of the PostgreSQL server."""
    if not POSTGRES.startswith("postgres"):
        yield {}
        return
    name = f"{name}_{os.getpid()}"  # tests run in several processes
    server = urlsplit(POSTGRES)._replace(scheme="postgresql", path="/postgres")
    with psycopg.connect(urlunsplit(server), autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        admin.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield {"DATABASE_URL": urlunsplit(urlsplit(POSTGRES)._replace(path=f"/{name}"))}
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@dataclass
class Site:
    """A running site, and an API key of its administrator."""

    folder: Path
    port: int
    environment: dict[str, str]
    key: str = ""

    def healthy(self) -> bool:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
        return False

    def api(self, address: str, body: dict[str, Any] | None = None) -> Any:
        """Return the answer of the API; a POST if there is a body."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/{address}")
        request.add_header("Authorization", f"Bearer {self.key}")
        request.add_header("Content-Type", "application/json")
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(request, data, timeout=30) as answer:
            return json.load(answer)

    def socket(self, conversation: int, after: int = 0) -> ClientConnection:
        """Open a socket for the events of a conversation."""
        return connect(
            f"ws://127.0.0.1:{self.port}/ws/conversations/{conversation}/?format=json&after={after}",
            additional_headers={"Authorization": f"Bearer {self.key}"},
        )

    @contextmanager
    def stream(self, address: str) -> Iterator[http.client.HTTPResponse]:
        """Open a stream of events."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as asked:
            asked.request("GET", f"/api/{address}", headers={"Authorization": f"Bearer {self.key}"})
            with asked.getresponse() as response:
                yield response

    def web(self) -> int:
        """Return the process of the web server."""
        (pid,) = [pid for pid in processes_of(self.folder) if b"agentsite.web" in _command(pid)]
        return pid

    def fills(self) -> int:
        """Create a conversation of 40 MB."""
        return int(
            run("-c", FILL, environment={**self.environment, "DJANGO_SETTINGS_MODULE": "agentsite.settings"}).stdout
        )


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`manage.py serve` against the scripted model server."""
    folder = tmp_path_factory.mktemp("push")
    script, port_file = folder / "script.json", folder / "port"
    script.write_text(json.dumps(TURNS))
    model = ("-m", "tests.wire", "--port", "0", "--port-file", str(port_file), "--script", str(script))
    with ExitStack() as stack:
        database = stack.enter_context(own_database("push_processes"))
        stack.enter_context(started(*model, environment=variables(folder / "model"), log=folder / "model.log"))
        wait_for(port_file.exists)
        port = free_port()
        environment = variables(
            folder / "data",
            PORT=str(port),
            OPENAI_BASE_URL=f"http://127.0.0.1:{port_file.read_text().strip()}/v1",
            OPENAI_API_KEY="scripted",
            DJANGO_SUPERUSER_USERNAME="ann",
            **database,
        )
        made = Site(folder / "data", port, environment)
        serve = stack.enter_context(started("manage.py", "serve", environment=environment, log=folder / "serve.log"))
        wait_for(made.healthy)
        made.key = run("manage.py", "api_key", "ann", environment=environment).stdout.strip()
        yield made
        serve.send_signal(signal.SIGTERM)
        assert serve.wait(timeout=60) == 0
    assert "Traceback" not in (folder / "serve.log").read_text()


def told(prompt: dict[str, Any]) -> dict[str, Any]:
    """Return what the events say about a prompt."""
    return {name: prompt[name] for name in ("state", "stop_reason", "input", "outputs", "usage")}


def lines(stream: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """Return the events of a stream, until the server ends it."""
    while line := stream.readline():
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


def test_a_worker_s_turn_is_told_by_the_web_server(site: Site) -> None:
    """Socket and stream rebuild what the API returns, with streaming text: no Redis, no shared memory (I9)."""
    conversation = site.api("conversations/", {})["id"]
    by_socket, by_stream = Transcript(), Transcript()
    with site.socket(conversation) as socket:
        prompt = site.api(f"conversations/{conversation}/prompts/", {"input": "Run it."})["id"]
        assert listen(socket, by_socket, prompt) > 2
    by_stream.connected(site.api(f"conversations/{conversation}/")["seq"])
    with site.stream(f"prompts/{prompt}/events/") as stream:
        for event in lines(stream):
            assert event["type"] != "text.delta", "history comes without its streaming text"
            by_stream.take(event)
    shown = told(site.api(f"prompts/{prompt}/"))
    assert by_socket.prompt(prompt) == shown
    assert by_stream.prompt(prompt) == shown
    assert by_stream.told == by_socket.told


def listen(socket: ClientConnection, transcript: Transcript, prompt: int) -> int:
    """Take events to the prompt's end. Returns how many of them were streaming text."""
    deltas = 0
    while transcript.state(prompt) != "completed":
        event = json.loads(socket.recv(timeout=60))
        deltas += event["type"] == "text.delta"
        transcript.take(event)
    return deltas


def test_the_server_dies_while_clients_listen(site: Site) -> None:
    """Killed during three turns; the client that reconnects has everything once (T-39)."""
    conversation, transcript = site.api("conversations/", {})["id"], Transcript()
    for _ in range(3):
        prompt = site.api(f"conversations/{conversation}/prompts/", {"input": "Run it."})["id"]
        with suppress(ConnectionClosed), site.socket(conversation, transcript.at) as socket:
            transcript.connected(site.api(f"conversations/{conversation}/")["seq"])
            transcript.take(json.loads(socket.recv(timeout=60)))
            os.kill(site.web(), signal.SIGKILL)
            listen(socket, transcript, prompt)
        wait_for(site.healthy)
        with site.socket(conversation, transcript.at) as socket:
            transcript.connected(site.api(f"conversations/{conversation}/")["seq"])
            listen(socket, transcript, prompt)
        assert transcript.prompt(prompt) == told(site.api(f"prompts/{prompt}/"))


def memory(pid: int) -> float:
    """Return the memory of a process in MB."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def slowest(site: Site, requests: int) -> float:
    """Return the longest response time of several requests, in seconds."""
    longest = 0.0
    for _ in range(requests):
        began = time.monotonic()
        assert site.healthy()
        longest = max(longest, time.monotonic() - began)
    return longest


def test_clients_that_read_nothing(site: Site) -> None:
    """20 streams of 40 MB that nobody reads: buffered that would be 800 MB. Other pages answer (T-42)."""
    conversation = site.fills()
    before = memory(site.web())
    with ExitStack() as stack:
        for _ in range(SILENT):
            stack.enter_context(site.stream(f"conversations/{conversation}/events/"))
        held = [before]
        while len(held) < 5 or held[-1] - held[-5] > 1:  # as long as it grows
            assert slowest(site, 5) < 5
            held.append(memory(site.web()))
        assert max(held) - before < 300  # 150 alone, 210 where other tests keep the readers waiting


@contextmanager
def web_alone(folder: Path) -> Iterator[tuple[Site, subprocess.Popen[bytes]]]:
    """A web server without a worker, and its process."""
    with own_database("push_web") as database:
        port = free_port()
        environment = variables(
            folder / "data", PORT=str(port), AGENTSITE_API_REQUESTS="1000000", AGENTSITE_STREAMS="1000", **database
        )
        made = Site(folder / "data", port, environment)
        assert run("manage.py", "migrate", environment=environment).returncode == 0
        admin = ("createsuperuser", "--noinput", "--username=ann", "--email=ann@example.com")
        run("manage.py", *admin, environment={**environment, "DJANGO_SUPERUSER_PASSWORD": "correct horse battery"})
        made.key = run("manage.py", "api_key", "ann", environment=environment).stdout.strip()
        with started("-m", "agentsite.web", environment=environment, log=folder / "web.log") as process:
            connect_to(made.port).close()
            yield made, process
    assert "Traceback" not in (folder / "web.log").read_text()


def test_silent_streams_keep_nothing_waiting(tmp_path: Path) -> None:
    """20 idle streams: other pages answer within 300 ms, and the server stops within 10 s (T-42)."""
    with web_alone(tmp_path) as (site, process), ExitStack() as stack:
        conversation = site.api("conversations/", {})["id"]
        for _ in range(SILENT):
            stack.enter_context(site.stream(f"conversations/{conversation}/events/"))
            stack.enter_context(site.socket(conversation))
        times = [taken(lambda: site.api("conversations/")) for _ in range(20)]
        assert statistics.median(times) < 0.3, times
        stopping = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        assert time.monotonic() - stopping < 10


def taken(work: Callable[[], object]) -> float:
    """Return how many seconds it takes."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


@pytest.mark.postgres
def test_connections_stay_flat(tmp_path: Path) -> None:
    """200 sockets, and one request after the other: the database sees as many connections as with one socket (T-37).

    None is idle in a transaction for a second.
    """
    with web_alone(tmp_path) as (site, _), ExitStack() as stack:
        conversations = [site.api("conversations/", {})["id"] for _ in range(10)]
        server = urlunsplit(urlsplit(site.environment["DATABASE_URL"])._replace(scheme="postgresql"))
        admin = stack.enter_context(psycopg.connect(server, autocommit=True))
        stack.enter_context(site.socket(conversations[0]))
        for number in range(SOCKETS):
            stack.enter_context(site.socket(conversations[number % 10]))
        most, until = 0, time.monotonic() + SECONDS
        while time.monotonic() < until:
            site.api("conversations/")
            most = max(most, connections_of(admin))
        # The tailer, its watch, the reader, one request; on a busy machine some that are just being closed.
        assert most <= 8


def connections_of(admin: psycopg.Connection[Any]) -> int:
    """Return the number of other connections; fails if one of them is in a transaction."""
    rows = admin.execute(
        "SELECT state, extract(epoch FROM now() - state_change) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid != pg_backend_pid()"
    ).fetchall()
    assert not [row for row in rows if row[0] == "idle in transaction" and row[1] > 1]
    return len(rows)
