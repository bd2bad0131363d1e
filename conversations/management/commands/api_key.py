from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations.accounts.keys import make_key
from conversations.models import Scope


class Command(BaseCommand):
    help = "Make an API key for somebody and print it, this once. Only its hash is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="whose key it is: it may do what this person may")
        parser.add_argument("--name", default="manage.py api_key", help="what it is for")
        parser.add_argument(
            "--scopes", default=",".join(Scope.values), help=f"of {','.join(Scope.values)}; all unless given"
        )
        parser.add_argument("--days", type=int, help="how long it lasts; without end unless given")

    def handle(self, *_args: object, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["username"], is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active user {options['username']!r}.")
        scopes = [scope.strip() for scope in options["scopes"].split(",") if scope.strip()]
        try:
            _, text = make_key(user, options["name"], scopes, options["days"])
        except ValueError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(text)  # nothing else: a script takes it from here
