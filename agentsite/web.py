"""The web process: `python -m agentsite.web` serves HOST:PORT with Daphne until SIGTERM or SIGINT, and exits with 0.

Daphne's own command is not used because with some versions of the packages below it Python 3.11 crashes at its exit
while a connection is open (25 of 25 times with one set of them, never with another; never on 3.12 or 3.13). The crash
comes after the server has stopped, so this entry flushes what it logged and leaves without the interpreter's tear-down.
"""

import logging
import os
import sys
from typing import NoReturn

from agentsite.errors import CannotStart

logger = logging.getLogger(__name__)


def run() -> NoReturn:
    """Serve until told to stop, then leave: with 0 after a stop, with 2 and one sentence where it cannot start."""
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

    Raises CannotStart where a setting makes no sense, the database keeps no ledger safe or the port cannot be opened.
    """
    # Daphne first: at its import it installs the event loop that everything after it is to use.
    from agentsite.server import PatientServer

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")

    from daphne.endpoints import build_endpoint_description_strings
    from django.conf import settings

    from agentsite.asgi import application
    from conversations.files.uploads import FILES_MOST, MB

    look_at_database()
    server = PatientServer(
        application=application,
        endpoints=build_endpoint_description_strings(host=settings.HOST, port=settings.PORT),
        server_name="agentsite",
        body_most=(FILES_MOST * settings.AGENTSITE_UPLOAD_MB + 2) * MB,  # and two for the text, and what stands around
    )
    server.run()
    if not server.listening_addresses:
        raise CannotStart(f"Port {settings.PORT} of {settings.HOST} cannot be opened: stop what holds it, or set PORT.")


def look_at_database() -> None:
    """Raise CannotStart where the database keeps no ledger safe. Where it is away, pages are there to say so."""
    from django.db import Error, connection

    from agentsite.preparation import refuse_unsafe_database

    try:
        refuse_unsafe_database()
    except Error:
        logger.warning("the database does not answer: whether it keeps ledgers safe is not known", exc_info=True)
    finally:
        connection.close()  # this thread asks it nothing more


if __name__ == "__main__":
    run()
