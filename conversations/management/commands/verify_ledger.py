from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations.models import Conversation, Erasure
from conversations.verification.stored import verify


class Command(BaseCommand):
    help = (
        "Check ledgers: the chain, the rules of turns, and that outputs and prompts are what their steps say. Prints a"
        " line for each problem and exits with 1 where there is one. The chain shows accidents and meddling by hand;"
        " against somebody who can rewrite the whole database only a head that was kept elsewhere helps."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("conversations", nargs="*", type=int, default=[], help="their ids")
        which.add_argument("--all", action="store_true", help="every conversation")

    def handle(self, *_args: object, **options: Any) -> None:
        ids = Conversation.objects.order_by("pk").values_list("pk", flat=True) if options["all"] else None
        conversations = list(ids) if ids is not None else options["conversations"]
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
                self.stdout.write(f"conversation {conversation}, {problem}")
        if problems:
            raise CommandError(f"{len(conversations)} conversations, {steps} steps: {problems} problems")
        self.stdout.write(f"{len(conversations)} conversations, {steps} steps: clean")

    def _absent(self, conversation: int) -> int:
        """Say why a conversation is not there; how many problems that is."""
        erasure = Erasure.objects.filter(conversation_id=conversation).first()
        self.stdout.write(
            f"conversation {conversation}: {f'erased by {erasure.erased_by}' if erasure else 'not there'}"
        )
        return 0 if erasure else 1
