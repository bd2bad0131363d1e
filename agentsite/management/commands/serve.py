from argparse import ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from agentsite.serve import serve


class Command(BaseCommand):
    help = "Start the whole site: prepare the database, then run web processes and a worker until Ctrl-C or SIGTERM."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--web",
            type=_number,
            default=settings.AGENTSITE_WEB,
            metavar="N",
            help="How many web processes share the port; AGENTSITE_WEB unless given (%(default)s here).",
        )
        parser.add_argument(
            "--reload",
            action="store_true",
            help="Restart the web processes and the worker when code changes: for whoever develops an app.",
        )

    def handle(self, *_args: object, **options: Any) -> None:
        serve(self._say, web=options["web"], reload=options["reload"])

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()  # stdout may be a pipe or a file


def _number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= settings.WEB_MOST:
        raise ArgumentTypeError(f"write a whole number from 1 to {settings.WEB_MOST}")
    return int(text)
