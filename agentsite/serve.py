"""`manage.py serve`: runs the whole site from one command.

    serve ── demo model     only where neither OPENAI_API_KEY nor OPENAI_BASE_URL is set
          ├─ web server     agentsite.web, AGENTSITE_WEB of them
          └─ worker         manage.py worker

They are stopped in the opposite order, so that a turn that is ending can still write, and still get an answer from its
model.
"""

import os
import signal
import socket
import sys
import tempfile
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import Error, connections

from agentsite.checks import log_reach
from agentsite.env import ROOT
from agentsite.preparation import Say, announce_administrator, prepare_database
from agentsite.reloading import Reloader
from agentsite.starting import TooSlow, await_child
from agentsite.webs import listen, start_webs
from conversations.database.sql import database_time
from conversations.worker import hosts
from conversations.worker.children import Child, Family

WORKER_STARTS = 3  # a worker that dies so often before it is ready cannot start
STOP_MARGIN_SECONDS = 20.0  # after AGENTSITE_STOP_SECONDS the worker stops its cluster, with a margin of its own


def serve(say: Say, *, web: int, reload: bool = False) -> None:
    """Run the site until SIGINT or SIGTERM. Calls `say` with what the person at the terminal needs to know.

    `web`: how many web processes. `reload`: restart them and the worker when code changes.

    Raises CannotStart if the site cannot start. A child that dies after it was ready is started again.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: sys.exit(0))  # nothing runs yet; a migration rolls back
    log_reach()
    with listen(settings.HOST, settings.PORT) as listener:
        prepare_database()
        announce_administrator(say)
        _run(say, listener, web, reload=reload)


def _run(say: Say, listener: socket.socket, web: int, *, reload: bool) -> None:
    """Start everything, and keep it running until a signal to stop."""
    began = database_time()
    connections.close_all()  # no child shares a connection of this process
    family, patience = Family(), settings.AGENTSITE_STOP_SECONDS + STOP_MARGIN_SECONDS
    with family.watching():
        try:
            own = _start_children(family, say, listener, web, began)
            family.tend(Reloader(family, own, say, patience) if reload else None)
        finally:
            if not family.stop(patience):
                say("Not everything stopped in time. What was cut off continues at the next start.")


def _start_children(family: Family, say: Say, listener: socket.socket, web: int, began: float) -> list[Child]:
    """Start everything. Returns the children that run the site's own code.

    `began`: when this site began to start, by the database's clock.
    """
    # Without the first administrator's variables, which commands could read.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("DJANGO_SUPERUSER_")}
    if not settings.OPENAI_API_KEY and not settings.OPENAI_BASE_URL:
        variables = variables | _start_demo(family, variables)
        say("No model is set up, so a small demo model answers. For a real one, set OPENAI_API_KEY or OPENAI_BASE_URL.")
    webs = start_webs(family, listener, web, variables, partial(await_child, family))
    worker = family.add(Child("worker", [sys.executable, "manage.py", "worker"], ROOT, variables))
    late = ""
    try:
        patience = settings.AGENTSITE_START_SECONDS
        await_child(family, worker, lambda: _runs_turns(worker, began), patience, WORKER_STARTS)
    except TooSlow as slow:  # the pages work, and it may still come
        late = f" {slow} Messages wait until it is ready."
    finally:
        connections.close_all()
    if not family.stopping:
        host = settings.HOST_HERE
        address = f"http://{f'[{host}]' if ':' in host else host}:{settings.PORT}/"
        say(f"Agentsite is running at {address} (Ctrl-C to stop){late}")
    return [*webs, worker]


def _start_demo(family: Family, variables: dict[str, str]) -> dict[str, str]:
    """Start the demo model on a free port, which it keeps when restarted. Returns the variables that point to it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "port"
        command = [sys.executable, "-m", "agents.providers.demo"]
        demo = family.add(Child("demo model", [*command, "--port", "0", "--port-file", str(file)], ROOT, variables))
        await_child(family, demo, lambda: _read(file).isdigit())
        port = _read(file)
    demo.command = [*command, "--port", port]
    return {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "OPENAI_API_KEY": "demo", "AGENTSITE_DEMO": "1"}


def _runs_turns(worker: Child, began: float) -> bool:
    try:
        return hosts.is_ready(hosts.this_host(), worker.pid, began)
    except Error:  # the database does not answer now: ask again
        return False


def _read(file: Path) -> str:
    return file.read_text().strip() if file.exists() else ""
