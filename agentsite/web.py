"""The web process: `python -m agentsite.web` serves HOST:PORT with Daphne until SIGTERM or SIGINT, and exits with 0.

Daphne's own command is not used: with some versions of its dependencies, Python 3.11 crashes on exit while a connection
is open (25 of 25 times with one set of them, never with another; never on 3.12 or 3.13). The crash happens after the
server has stopped, so this module flushes the logs and exits without the interpreter's tear-down.
"""

import gc
import logging
import os
import sys
from typing import NoReturn

from agentsite.errors import CannotStart

logger = logging.getLogger(__name__)


def run() -> NoReturn:
    """Serve until stopped, then exit with 0. If the site cannot start, print one sentence and exit with 2."""
    code = 0
    try:
        serve()
    except CannotStart as error:
        sys.stderr.write(f"agentsite: {error}\n")
        code = 2
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def serve() -> None:
    """Serve until SIGTERM or SIGINT.

    Raises CannotStart if a setting is invalid, the database cannot keep ledgers safe or the port cannot be opened.
    """
    # Daphne first: on import it installs the event loop that everything after it must use.
    from agentsite.server import PatientServer

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")

    from daphne.endpoints import build_endpoint_description_strings
    from django.conf import settings

    from agentsite.asgi import application
    from agentsite.checks import log_reach
    from agentsite.limits import SiteLimits
    from conversations.accounts.counts import COUNTS

    check_database()
    log_reach()
    server = PatientServer(
        application=application,
        endpoints=build_endpoint_description_strings(host=settings.HOST, port=settings.PORT),
        server_name="agentsite",
        limits=SiteLimits(),
    )
    # What was loaded is never garbage. To look through it takes 0.1 s, and everybody would wait meanwhile.
    gc.collect()
    gc.freeze()
    server.run()
    COUNTS.flush()
    if not server.listening_addresses:
        raise CannotStart(
            f"Port {settings.PORT} of {settings.HOST} cannot be opened: stop the program that uses it, or set PORT."
        )


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
