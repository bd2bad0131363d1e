from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from conversations.erasure.conversations import TurnRuns
from conversations.erasure.people import LastAdministrator, erase_user
from conversations.management.arguments import reason
from conversations.management.people import user_named


class Command(BaseCommand):
    help = (
        "Erase a person: all their conversations, name, e-mail address, password, API keys and sessions. What stays is"
        " an inactive user without a name, to whom their decisions and usage still belong."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="whom to erase")
        parser.add_argument("--by", required=True, metavar="USERNAME", help="who is responsible for it")
        parser.add_argument("--reason", type=reason, required=True, help="why; kept on record")

    def handle(self, *_args: object, **options: Any) -> None:
        user, by = user_named(options["username"]), user_named(options["by"])
        try:
            count = erase_user(user, by, options["reason"])
        except (TurnRuns, LastAdministrator) as error:
            raise CommandError(str(error)) from None
        conversations = f"{count} conversation{pluralize(count)}"
        self.stdout.write(f"Erased {options['username']}, with {conversations}. Now called {user.get_username()}.")
