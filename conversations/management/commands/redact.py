from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations.erasure.steps import NotRedacted, redact
from conversations.management.arguments import conversation_id, reason, step_number
from conversations.management.people import user_named
from conversations.models import Conversation


class Command(BaseCommand):
    help = (
        "Remove the content of steps of a conversation, and of everything derived from them. The steps themselves stay,"
        " and the ledger still verifies. Backups, the workspace and the provider of the model keep what they have."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("conversation", type=conversation_id, help="the conversation's id")
        parser.add_argument("seq", type=step_number, nargs="+", help="the numbers of the steps")
        parser.add_argument("--by", required=True, metavar="USERNAME", help="who is responsible for it")
        parser.add_argument("--reason", type=reason, required=True, help="why; kept on record")

    def handle(self, *_args: object, **options: Any) -> None:
        by = user_named(options["by"])
        conversation = Conversation.objects.filter(pk=options["conversation"]).first()
        if conversation is None:
            raise CommandError(f"There is no conversation {options['conversation']}.")
        try:
            done = redact(conversation, options["seq"], by, options["reason"])
        except NotRedacted as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"Redacted in conversation {conversation.pk}: steps {', '.join(map(str, done.seqs))}.")
        if done.copies:
            copies = ", ".join(map(str, done.copies))
            self.stdout.write(f"These steps still contain the same text: {copies}. Consider redacting them too.")
