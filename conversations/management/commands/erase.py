from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from conversations.erasure.conversations import TurnRuns, erase
from conversations.management.arguments import conversation_id, reason
from conversations.management.people import user_named
from conversations.models import Conversation


class Command(BaseCommand):
    help = "Erase a conversation with everything in it. A record of who did it, when and why remains."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("conversation", type=conversation_id, help="the conversation's id")
        parser.add_argument("--by", required=True, metavar="USERNAME", help="who is responsible for it")
        parser.add_argument("--reason", type=reason, required=True, help="why; kept on record")

    def handle(self, *_args: object, **options: Any) -> None:
        by = user_named(options["by"])
        conversation = Conversation.objects.filter(pk=options["conversation"]).first()
        if conversation is None:
            raise CommandError(f"There is no conversation {options['conversation']}.")
        try:
            erasure = erase(conversation, by, options["reason"])
        except TurnRuns as error:
            raise CommandError(str(error)) from None
        steps = f"{erasure.steps} step{pluralize(erasure.steps)}"
        self.stdout.write(f"Erased conversation {erasure.conversation_id}, with {steps}.")
