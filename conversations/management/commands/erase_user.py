from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.template.defaultfilters import pluralize

from conversations.erasure.conversations import TurnRuns
from conversations.erasure.people import LastAdministrator, erase_user
from conversations.management.arguments import add_responsible, user_named
from conversations.management.printing import report_left_behind, reporting
from conversations.models import Conversation


class Command(BaseCommand):
    help = (
        "Erase a person: all their conversations, name, e-mail address, password, API keys and sessions. What stays is"
        " an inactive user without a name, to whom their decisions and usage still belong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="whom to erase")
        add_responsible(parser)

    def handle(self, *_args: object, **options: Any) -> None:
        user, by = user_named(options["username"]), user_named(options["by"])
        theirs = list(Conversation.objects.filter(owner=user).values_list("pk", flat=True))
        with reporting(TurnRuns, LastAdministrator):
            count = erase_user(user, by, options["reason"])
        conversations = f"{count} conversation{pluralize(count)}"
        self.stdout.write(f"Erased {options['username']}, with {conversations}. Now called {user.get_username()}.")
        report_left_behind(theirs)
