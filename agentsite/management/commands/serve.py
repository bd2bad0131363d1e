from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agentsite.serve import serve


class Command(BaseCommand):
    help = "Start the whole site: prepare the database, then run the web server and a worker until Ctrl-C or SIGTERM."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--reload",
            action="store_true",
            help="Restart the web server and the worker when code changes: for whoever develops an app.",
        )

    def handle(self, *_args: object, **options: Any) -> None:
        serve(self._say, reload=options["reload"])

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()  # stdout may be a pipe or a file
