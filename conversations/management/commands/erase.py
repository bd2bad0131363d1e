from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations.erasure import TurnRuns, erase
from conversations.models import Conversation


class Command(BaseCommand):
    help = "Erase a conversation with everything in it. Who did it, when and why stays on record."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("conversation", type=int, help="its id")
        parser.add_argument("--by", required=True, metavar="USERNAME", help="who answers for it")
        parser.add_argument("--reason", required=True)

    def handle(self, *_args: object, **options: Any) -> None:
        users, conversations = get_user_model().objects, Conversation.objects
        by = users.filter(username=options["by"]).first()
        if by is None:
            raise CommandError(f"There is no user {options['by']!r}.")
        conversation = conversations.filter(pk=options["conversation"]).first()
        if conversation is None:
            raise CommandError(f"There is no conversation {options['conversation']}.")
        try:
            erasure = erase(conversation, by, options["reason"])
        except TurnRuns as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"Conversation {erasure.conversation_id} is erased, with {erasure.steps} steps.")
