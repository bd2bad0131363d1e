from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from conversations.display.faithful import plain
from conversations.management.arguments import conversation_id
from conversations.management.printing import printed
from conversations.models import Conversation, Erasure
from conversations.verification.all import verify_all
from conversations.verification.exported import verify_file
from conversations.verification.stored import verify


class Command(BaseCommand):
    help = (
        "Check ledgers: the chain, the rules of turns, and that outputs and prompts are what their steps say. Prints a"
        " line for each problem and exits with 1 where there is one. The chain shows accidents and meddling by hand;"
        " against somebody who can rewrite the whole database only a head that was kept elsewhere helps, such as that"
        " of a file of `export_ledger`, which `--file` checks without the database."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("conversations", nargs="*", type=conversation_id, default=[], help="their ids")
        which.add_argument("--all", action="store_true", help="every conversation; what came of it is kept")
        which.add_argument("--file", type=Path, help="a ledger that was written by `export_ledger`")

    def handle(self, *_args: object, **options: Any) -> None:
        with printed(self.stdout):
            if options["file"]:
                self._file(options["file"])
            elif options["all"]:
                run = verify_all(self._tell)
                self._end(run.conversations, run.steps, run.count)
            else:
                self._some(options["conversations"])

    def _some(self, conversations: list[int]) -> None:
        steps = problems = 0
        for conversation in conversations:
            try:
                found = verify(conversation)
            except Conversation.DoesNotExist:
                problems += self._absent(conversation)
                continue
            steps += found.steps
            problems += len(found.problems)
            for problem in found.problems:
                self._tell(f"conversation {conversation}, {problem}")
        self._end(len(conversations), steps, problems)

    def _file(self, file: Path) -> None:
        try:
            with file.open("rb") as lines:
                found = verify_file(lines)
        except OSError as error:
            raise CommandError(str(error)) from None
        for problem in found.problems:
            self._tell(str(problem))
        self.stdout.write(f"head: seq {found.seq}, digest {found.head}")
        self._end(1, found.steps, len(found.problems))

    def _tell(self, problem: str) -> None:
        """Print a problem: what it quotes may hold anything, and does nothing to a terminal."""
        self.stdout.write(plain(problem))

    def _end(self, conversations: int, steps: int, problems: int) -> None:
        """The last line. Raises CommandError, which exits with 1, where there are problems."""
        looked_at = f"{conversations} conversation{pluralize(conversations)}, {steps} step{pluralize(steps)}"
        if problems:
            raise CommandError(f"{looked_at}: {problems} problem{pluralize(problems)}")
        self.stdout.write(f"{looked_at}: clean")

    def _absent(self, conversation: int) -> int:
        """Say why a conversation is not there; how many problems that is."""
        erasure = Erasure.objects.filter(conversation_id=conversation).first()
        self.stdout.write(
            f"conversation {conversation}: {f'erased by {erasure.erased_by}' if erasure else 'not there'}"
        )
        return 0 if erasure else 1
