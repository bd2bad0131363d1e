"""`manage.py serve` as a whole, in real processes."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from textwrap import indent

import pytest

from tests.agentsite.processes import free_port, processes_of, run, started, variables, wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc says which processes are the site's")


@dataclass
class Site:
    process: subprocess.Popen[bytes]
    folder: Path
    log: Path
    port: int

    def said(self) -> str:
        return self.log.read_text()

    def wait_until_up(self) -> None:
        wait_for(lambda: "Agentsite is running at http://" in self.said() or self.process.poll() is not None)
        assert self.process.poll() is None, self.said()

    def get(self, path: str) -> int:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        finally:
            connection.close()

    def child(self, words: str) -> int:
        """The process id of the child whose command line holds `words`; 0 if there is none."""
        return min(self.children(words), default=0)

    def children(self, words: str) -> list[int]:
        """The process ids of all of them."""
        return [process for process in processes_of(self.folder) if words in _command(process)]


def _command(process: int) -> str:
    with suppress(OSError):  # gone by now
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    return ""


@contextmanager
def site(folder: Path, *options: str, **more: str) -> Iterator[Site]:
    port, log = free_port(), folder.with_name("serve.log")
    environment = variables(folder, PORT=str(port), AGENTSITE_STOP_SECONDS="5", **more)
    with started("manage.py", "serve", *options, environment=environment, log=log) as process:
        yield Site(process, folder, log, port)
    wait_for(lambda: not processes_of(folder))  # whatever the test did, no child stays


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "site"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_ends_all_of_it_with_0(number: signal.Signals, folder: Path) -> None:
    with site(folder) as running:
        running.wait_until_up()
        assert running.get("/login/") == 200
        running.process.send_signal(number)
        assert running.process.wait(timeout=60) == 0, running.said()
        assert not processes_of(folder)
        assert "Traceback" not in running.said()


def test_it_says_that_it_is_running_once_its_worker_is_ready(folder: Path) -> None:
    """Whoever reads it may send a message: there is a worker that takes it up."""
    with site(folder) as running:
        running.wait_until_up()
        with closing(sqlite3.connect(folder / "data" / "agentsite.sqlite3")) as database:
            assert database.execute("SELECT beat_at > started_at FROM conversations_worker").fetchall() == [(1,)]
        assert "Messages wait" not in running.said()
        assert running.get("/healthz") == 200
        wait_for(lambda: re.search(r"The worker \S+ is ready: it runs turns\.", running.said()))


def test_a_worker_that_is_late_is_named_and_the_pages_are_there(folder: Path) -> None:
    with site(folder, AGENTSITE_START_SECONDS="0.5") as running:
        running.wait_until_up()
        assert "The worker was not ready within 0.5 s: see its output above. Messages wait" in running.said()
        assert running.get("/login/") == 200
        wait_for(lambda: "is ready: it runs turns." in running.said())


@pytest.fixture
def in_worker(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """The variables of a site whose worker runs this code before it starts."""

    def app(code: str) -> dict[str, str]:
        file = tmp_path / "apps" / "first" / "__init__.py"
        file.parent.mkdir(parents=True)
        file.write_text(f"import sys\nif sys.argv[-1] == 'worker':\n{indent(code, '    ')}\n")
        return {"AGENTSITE_APPS": "first", "PYTHONPATH": str(file.parents[1])}

    return app


def test_what_dies_while_the_worker_starts_is_started_again(
    folder: Path, tmp_path: Path, in_worker: Callable[[str], dict[str, str]]
) -> None:
    """A worker may need two minutes; the pages, and the demo model, do not stay away for so long."""
    hold = tmp_path / "hold"
    hold.touch()
    waits = f"import os, time\nwhile os.path.exists({str(hold)!r}):\n    time.sleep(0.02)"
    with site(folder, **in_worker(waits)) as running:
        wait_for(lambda: running.child("manage.py worker"))
        before = {each: running.child(each) for each in ("agentsite.web", "agents.providers.demo")}
        for process in before.values():
            os.kill(process, signal.SIGKILL)
        wait_for(lambda: all(running.child(each) not in {0, first} for each, first in before.items()))
        assert "Agentsite is running" not in running.said()
        hold.unlink()
        running.wait_until_up()


def test_a_worker_that_dies_once_while_it_starts_is_started_again(
    folder: Path, tmp_path: Path, in_worker: Callable[[str], dict[str, str]]
) -> None:
    died = tmp_path / "died"
    dies = (
        f"import os\nif not os.path.exists({str(died)!r}):\n    open({str(died)!r}, 'w').close()\n    sys.exit('once')"
    )
    with site(folder, **in_worker(dies)) as running:
        running.wait_until_up()
        assert "The worker ended with 1; it starts again" in running.said()
        assert "Messages wait" not in running.said()


def test_the_row_of_an_earlier_worker_with_the_same_id_is_not_taken_for_this_one(
    folder: Path, in_worker: Callable[[str], dict[str, str]]
) -> None:
    """In a container the host's name may be fixed, and process ids repeat."""
    file = folder / "data" / "agentsite.sqlite3"
    earlier = f"""
import os, signal, sqlite3
with sqlite3.connect({str(file)!r}) as database:
    database.execute(
        "INSERT INTO conversations_worker (host, pid, started_at, beat_at, stopping, drains)"
        " VALUES ('ox', ?, 1000, 2000, 0, 1)", [os.getpid()])
    database.execute(
        "INSERT INTO conversations_drain (host, number, token, until) VALUES ('ox', 0, 'another', 1e11)")
print("as before", flush=True)
signal.pause()
"""
    with site(folder, AGENTSITE_HOST="ox", **in_worker(earlier)) as running:
        wait_for(lambda: "as before" in running.said())
        web = running.child("agentsite.web")
        os.kill(web, signal.SIGKILL)
        wait_for(lambda: running.child("agentsite.web") not in {0, web})  # meanwhile, serve has looked for the worker
        assert "Agentsite is running" not in running.said()


def test_a_worker_that_cannot_start_ends_the_site_with_words(
    folder: Path, in_worker: Callable[[str], dict[str, str]]
) -> None:
    with site(folder, **in_worker("sys.exit('no worker today')")) as running:
        wait_for(lambda: "no worker today" in running.said())
        wait_for(lambda: running.said().count("no worker today") == 3)
        assert running.process.wait(timeout=60) == 2, running.said()
        assert "The worker stopped while it was starting: see its output above." in running.said()
        assert "Agentsite is running" not in running.said()


def test_a_worker_alone_says_when_it_is_ready(folder: Path) -> None:
    log = folder.with_name("worker.log")
    with started("manage.py", "worker", environment=variables(folder, AGENTSITE_HOST="ox"), log=log) as process:
        wait_for(lambda: "The worker ox is ready: it runs turns." in log.read_text())
        process.terminate()
        assert process.wait(timeout=60) == 0


def test_a_killed_serve_leaves_no_process(folder: Path) -> None:
    with site(folder) as running:
        running.wait_until_up()
        running.process.kill()
        wait_for(lambda: not processes_of(folder))


def test_a_dead_child_is_started_again(folder: Path) -> None:
    with site(folder) as running:
        running.wait_until_up()
        first = running.child("agentsite.web")
        subprocess.run(["kill", "-9", str(first)], check=True)
        wait_for(lambda: running.child("agentsite.web") not in {0, first})
        assert "The web server ended" in running.said()


def test_while_a_web_process_is_dead_nobody_is_refused(folder: Path) -> None:
    """The others answer; and if all are dead, requests wait for the next one."""
    with site(folder, "--web", "2") as running:
        running.wait_until_up()
        first = running.children("agentsite.web")
        assert len(first) == 2
        for dead in (first[:1], first):
            for process in dead:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            wait_for(partial(_are_gone, running, dead))
            answers = [running.get("/login/")]
            while len(running.children("agentsite.web")) < 2:
                answers.append(running.get("/login/"))
            assert set(answers) == {200}
        assert "The web server 1 ended" in running.said()
        running.process.terminate()
        assert running.process.wait(timeout=60) == 0, running.said()


def test_both_web_processes_take_connections_and_both_stop_while_these_are_open(folder: Path) -> None:
    with site(folder, AGENTSITE_WEB="2") as running, ExitStack() as stack:
        running.wait_until_up()
        webs = running.children("agentsite.web")
        before = {web: _connections(web) for web in webs}
        for _ in range(40):
            connection = stack.enter_context(closing(HTTPConnection("127.0.0.1", running.port, timeout=30)))
            connection.request("GET", "/static/conversations/mark.svg")
            connection.getresponse().read()
        assert all(_connections(web) > before[web] for web in webs), before
        running.process.terminate()
        assert running.process.wait(timeout=60) == 0, running.said()
        assert "Not everything stopped in time" not in running.said()


def _connections(process: int) -> int:
    """How many sockets this process has open."""
    sockets = 0
    for file in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed in between
            sockets += str(file.readlink()).startswith("socket:")
    return sockets


def _are_gone(running: Site, processes: list[int]) -> bool:
    return not {*processes} & {*running.children("agentsite.web")}


@pytest.mark.parametrize("number", ["0", "many", "-1"])
def test_a_number_of_web_processes_is_one(number: str, folder: Path) -> None:
    refused = run("manage.py", "serve", "--web", number, environment=variables(folder))
    assert refused.returncode == 2
    assert "write a whole number from 1 to 64" in refused.stderr


def test_the_first_start_makes_an_administrator_and_the_second_none(folder: Path) -> None:
    for attempt in ("first", "second"):
        with site(folder) as running:
            running.wait_until_up()
            password = re.search(r"The first administrator is admin, with the password (\S+) ", running.said())
            assert bool(password) == (attempt == "first")
            running.process.terminate()
            running.process.wait(timeout=60)


def test_the_administrator_may_be_named(folder: Path) -> None:
    given = {"DJANGO_SUPERUSER_USERNAME": "root", "DJANGO_SUPERUSER_PASSWORD": "a long secret"}
    with site(folder, **given) as running:
        running.wait_until_up()
        assert "The first administrator is root" in running.said()
        assert given["DJANGO_SUPERUSER_PASSWORD"] not in running.said()
        wait_for(lambda: running.child("manage.py worker"))
        for child in ("agentsite.web", "manage.py worker", "agents.providers.demo"):
            told = Path(f"/proc/{running.child(child)}/environ").read_text()
            assert "PATH=" in told
            assert "DJANGO_SUPERUSER_" not in told, child


def test_the_demo_model_answers_where_no_model_is_set_up(folder: Path) -> None:
    with site(folder) as running:
        running.wait_until_up()
        assert running.child("agents.providers.demo")
        assert "demo model" in running.said()


def test_no_demo_model_starts_beside_a_real_one(folder: Path) -> None:
    with site(folder, OPENAI_BASE_URL="http://127.0.0.1:1/v1") as running:
        running.wait_until_up()
        assert not running.child("agents.providers.demo")
        assert "demo model" not in running.said()


def test_changed_code_restarts_what_runs_it_unless_it_is_broken(folder: Path, tmp_path: Path) -> None:
    tools = tmp_path / "apps" / "stock" / "tools.py"
    tools.parent.mkdir(parents=True)
    (tools.parent / "__init__.py").touch()
    tools.write_text("LEVEL = 1\n")
    of_apps = {"AGENTSITE_APPS": "stock", "PYTHONPATH": str(tools.parents[1])}
    with site(folder, "--reload", **of_apps) as running:
        running.wait_until_up()
        wait_for(lambda: running.get("/healthz") == 200)  # the worker has loaded the app
        children = ("agentsite.web", "manage.py worker", "agents.providers.demo")
        before = [running.child(each) for each in children]
        tools.write_text("LEVEL = 2 +\n")
        wait_for(lambda: "Not restarted, because the site would not start" in running.said())
        wait_for(lambda: "SyntaxError" in running.said())
        assert [running.child(each) for each in children] == before
        tools.write_text("LEVEL = 22\n")
        wait_for(lambda: "Restarted." in running.said())
        assert f"Changed: {tools}" in running.said()
        wait_for(lambda: running.child("manage.py worker"))
        now = [running.child(each) for each in children]
        assert [was == is_now for was, is_now in zip(before, now, strict=True)] == [False, False, True]
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(timeout=60) == 0, running.said()
