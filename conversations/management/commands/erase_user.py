from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from conversations.erasure.conversations import TurnRuns
from conversations.erasure.people import LastAdministrator, erase_user
from conversations.management.arguments import reason
from conversations.management.people import named


class Command(BaseCommand):
    help = (
        "Erase all conversations of a person, and what the site knows of them: name, e-mail, password, keys, sessions."
        " What stays is an inactive user without a name, who decided what they decided and used what they used."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="who leaves")
        parser.add_argument("--by", required=True, metavar="USERNAME", help="who answers for it")
        parser.add_argument("--reason", type=reason, required=True)

    def handle(self, *_args: object, **options: Any) -> None:
        user, by = named(options["username"]), named(options["by"])
        try:
            count = erase_user(user, by, options["reason"])
        except (TurnRuns, LastAdministrator) as error:
            raise CommandError(str(error)) from None
        conversations = f"{count} conversation{pluralize(count)}"
        self.stdout.write(f"{options['username']} is erased, with {conversations}; now {user.get_username()}.")
