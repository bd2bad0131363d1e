from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from conversations.erasure.steps import NotRedacted, redact
from conversations.management import arguments
from conversations.management.printing import reporting


class Command(BaseCommand):
    help = (
        "Remove the content of steps of a conversation, and of everything derived from them. The steps themselves stay,"
        " and the ledger still verifies. Backups, the workspace and the provider of the model keep what they have."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("conversation", type=arguments.conversation_id, help="the conversation's id")
        parser.add_argument("seq", type=arguments.step_number, nargs="+", help="the numbers of the steps")
        arguments.add_responsible(parser)

    def handle(self, *_args: object, **options: Any) -> None:
        by = arguments.user_named(options["by"])
        conversation = arguments.conversation_with(options["conversation"])
        with reporting(NotRedacted):
            done = redact(conversation, options["seq"], by, options["reason"])
        self.stdout.write(f"Redacted in conversation {conversation.pk}: steps {', '.join(map(str, done.seqs))}.")
        if done.copies:
            copies = ", ".join(map(str, done.copies))
            self.stdout.write(f"These steps still contain the same text: {copies}. Consider redacting them too.")
