from django.core.management.base import BaseCommand

from agentsite.serve import serve


class Command(BaseCommand):
    help = "Start the whole site: prepare the database, then run the web server and a worker until Ctrl-C or SIGTERM."

    def handle(self, *_args: object, **_options: object) -> None:
        serve(self._say)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()  # stdout may be a pipe or a file
