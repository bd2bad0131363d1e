"""A web server: `python -m agentsite.web` serves HOST:PORT with Daphne until SIGTERM or SIGINT, and exits with 0.

With AGENTSITE_WEB above 1 it does so in that many processes, and keeps each of them running (agentsite.webs). Such a
process is started with `--socket NUMBER`, the descriptor of a socket that listens, and `--ready-file PATH`, a file that
it makes once it takes connections.

Daphne's own command is not used: with some versions of its dependencies, Python 3.11 crashes on exit while a connection
is open (25 of 25 times with one set of them, never with another; never on 3.12 or 3.13). The crash happens after the
server has stopped, so this module flushes the logs and exits without the interpreter's tear-down.
"""

import argparse
import gc
import logging
import os
import socket
import sys
from functools import partial
from pathlib import Path
from threading import Event
from typing import NoReturn

from agentsite.errors import CannotStart

logger = logging.getLogger(__name__)


STOP_SECONDS = 20.0
"""How long each of several web processes may take to end: it cancels what is under way, and waits for that to end."""


def run() -> NoReturn:
    """Serve until stopped, then exit with 0. If the site cannot start, print one sentence and exit with 2."""
    parser = argparse.ArgumentParser(
        prog="python -m agentsite.web", description="Serve HOST:PORT with AGENTSITE_WEB processes."
    )
    parser.add_argument("--socket", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--ready-file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    code = 0
    try:
        set_up()
        if options.socket is None:
            serve_address()
        else:
            serve(socket.socket(fileno=options.socket), options.ready_file)
    except CannotStart as error:
        sys.stderr.write(f"agentsite: {error}\n")
        code = 2
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def set_up() -> None:
    """Load the site. Raises CannotStart if a setting is invalid, or the database cannot keep ledgers safe."""
    # Daphne first: on import it installs the event loop that everything after it must use.
    import agentsite.server

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")

    import agentsite.asgi  # noqa: F401

    check_database()


def serve_address() -> None:
    """Serve HOST:PORT with AGENTSITE_WEB processes until SIGTERM or SIGINT. Raises CannotStart."""
    from django.conf import settings

    from agentsite.checks import log_reach
    from agentsite.webs import listen

    log_reach()
    listener = listen(settings.HOST, settings.PORT)
    if settings.AGENTSITE_WEB == 1:
        serve(listener)
    else:
        supervise(listener, settings.AGENTSITE_WEB)


def supervise(listener: socket.socket, number: int) -> None:
    """Serve this socket with so many processes until SIGTERM or SIGINT. Raises CannotStart if they cannot start."""
    from agentsite.starting import await_child
    from agentsite.webs import start_webs
    from conversations.worker.children import Family

    family = Family()
    with family.watching():
        try:
            start_webs(family, listener, number, os.environ, partial(await_child, family))
            family.tend()
        finally:
            family.stop(STOP_SECONDS)


def serve(listener: socket.socket, ready_file: Path | None = None) -> None:
    """Serve this socket in this process until SIGTERM or SIGINT. Once it does, make the `ready_file`."""
    from agentsite.asgi import application
    from agentsite.limits import SiteLimits
    from agentsite.server import PatientServer
    from conversations.accounts.counts import COUNTS
    from conversations.database.erasable_cache import keep_looking

    server = PatientServer(
        application=application,
        listener=listener,
        ready=ready_file.touch if ready_file else lambda: None,
        server_name="agentsite",
        limits=SiteLimits(),
    )
    # What was loaded is never garbage. To look through it takes 0.1 s, and everybody would wait meanwhile.
    gc.collect()
    gc.freeze()
    over = Event()
    keep_looking(over)
    server.run()
    over.set()
    COUNTS.flush()


def check_database() -> None:
    """Raise CannotStart if the database cannot keep ledgers safe. If it is unreachable, the pages will say so."""
    from django.db import Error, connection

    from agentsite.preparation import refuse_unsafe_database

    try:
        refuse_unsafe_database()
    except Error:
        logger.warning("cannot check that the database keeps ledgers safe: it does not answer", exc_info=True)
    finally:
        connection.close()  # this thread does not use it again


if __name__ == "__main__":
    run()
