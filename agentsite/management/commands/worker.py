from django.core.management.base import BaseCommand

from agentsite.preparation import refuse_unsafe_database
from conversations.database.lasting import keep_connections
from conversations.worker.parent import Parent


class Command(BaseCommand):
    help = "Run this host's worker, which runs turns and background tasks, until SIGTERM or Ctrl-C."

    def handle(self, *_args: object, **_options: object) -> None:
        refuse_unsafe_database()
        keep_connections()
        Parent(self._say)()

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()  # stdout may be a pipe or a file
