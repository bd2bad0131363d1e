from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations.erasure.steps import NotRedacted, redact
from conversations.management.arguments import conversation_id, reason, step_number
from conversations.management.people import named
from conversations.models import Conversation


class Command(BaseCommand):
    help = (
        "Take the content out of steps of a conversation, and out of all that was made from them: what was said goes,"
        " that it was said stays, and the ledger still verifies. Backups, the workspace and whoever answered for the"
        " model keep what they have."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("conversation", type=conversation_id, help="its id")
        parser.add_argument("seq", type=step_number, nargs="+", help="the numbers of the steps")
        parser.add_argument("--by", required=True, metavar="USERNAME", help="who answers for it")
        parser.add_argument("--reason", type=reason, required=True)

    def handle(self, *_args: object, **options: Any) -> None:
        by = named(options["by"])
        conversation = Conversation.objects.filter(pk=options["conversation"]).first()
        if conversation is None:
            raise CommandError(f"There is no conversation {options['conversation']}.")
        try:
            done = redact(conversation, options["seq"], by, options["reason"])
        except NotRedacted as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"Redacted in conversation {conversation.pk}: steps {', '.join(map(str, done.seqs))}.")
        if done.copies:
            self.stdout.write(f"The same text stands in steps {', '.join(map(str, done.copies))}: look at these too.")
