from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.template.defaultfilters import pluralize

from conversations.erasure.conversations import TurnRuns, erase
from conversations.management.arguments import add_responsible, conversation_id, conversation_with, user_named
from conversations.management.printing import report_left_behind, reporting


class Command(BaseCommand):
    help = "Erase a conversation with everything in it. A record of who did it, when and why remains."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("conversation", type=conversation_id, help="the conversation's id")
        add_responsible(parser)

    def handle(self, *_args: object, **options: Any) -> None:
        by, conversation = user_named(options["by"]), conversation_with(options["conversation"])
        with reporting(TurnRuns):
            erasure = erase(conversation, by, options["reason"])
        steps = f"{erasure.steps} step{pluralize(erasure.steps)}"
        self.stdout.write(f"Erased conversation {erasure.conversation_id}, with {steps}.")
        report_left_behind([erasure.conversation_id])
