from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from conversations.display.faithful import plain
from conversations.management.arguments import conversation_id
from conversations.management.printing import flushed, reporting
from conversations.models import Conversation, Erasure
from conversations.verification.all import verify_all
from conversations.verification.exported import verify_file
from conversations.verification.stored import verify


class Command(BaseCommand):
    help = (
        "Check ledgers: the chain, the rules of turns, and that outputs and prompts match their steps. Prints a line"
        " for each problem, and exits with 1 if there is one. The chain reveals accidents and manual changes. Against"
        " somebody who can rewrite the whole database, only a head that is kept elsewhere helps, such as the one in a"
        " file of `export_ledger`, which `--file` checks without the database."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("conversations", nargs="*", type=conversation_id, default=[], help="the conversations' ids")
        which.add_argument("--all", action="store_true", help="every conversation; the result is stored")
        which.add_argument("--file", type=Path, help="a ledger written by `export_ledger`")

    def handle(self, *_args: object, **options: Any) -> None:
        with flushed(self.stdout):
            if options["file"]:
                self._file(options["file"])
            elif options["all"]:
                run = verify_all(self._print_problem)
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
                self._print_problem(f"conversation {conversation}, {problem}")
        self._end(len(conversations), steps, problems)

    def _file(self, file: Path) -> None:
        with reporting(OSError), file.open("rb") as lines:
            found = verify_file(lines)
        for problem in found.problems:
            self._print_problem(str(problem))
        self.stdout.write(f"head: seq {found.chain.seq}, digest {found.chain.head}")
        self._end(1, found.steps, len(found.problems))

    def _print_problem(self, problem: str) -> None:
        """Print a problem. It may quote anything, so control characters are made visible."""
        self.stdout.write(plain(problem))

    def _end(self, conversations: int, steps: int, problems: int) -> None:
        """Print the last line. Raises CommandError, which exits with 1, if there are problems."""
        looked_at = f"{conversations} conversation{pluralize(conversations)}, {steps} step{pluralize(steps)}"
        if problems:
            raise CommandError(f"{looked_at}: {problems} problem{pluralize(problems)}")
        self.stdout.write(f"{looked_at}: clean")

    def _absent(self, conversation: int) -> int:
        """Print why a conversation does not exist; return how many problems that is."""
        erasure = Erasure.objects.filter(conversation_id=conversation).first()
        self.stdout.write(
            f"conversation {conversation}: {f'erased by {erasure.erased_by}' if erasure else 'not found'}"
        )
        return 0 if erasure else 1
