from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from conversations.accounts.keys import make_key
from conversations.management.arguments import user_named
from conversations.management.printing import reporting
from conversations.models import Scope


class Command(BaseCommand):
    help = "Create an API key for a user and print it. It cannot be shown again: only its hash is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="the key's owner: it may do what this user may")
        parser.add_argument("--name", default="manage.py api_key", help="what the key is for")
        parser.add_argument(
            "--scopes", default=",".join(Scope.values), help=f"any of {','.join(Scope.values)}; default: all"
        )
        parser.add_argument("--days", type=int, help="days until it expires; default: never")

    def handle(self, *_args: object, **options: Any) -> None:
        user = user_named(options["username"])
        scopes = [scope.strip() for scope in options["scopes"].split(",") if scope.strip()]
        with reporting(ValueError):
            _, text = make_key(user, options["name"], scopes, options["days"])
        self.stdout.write(text)  # nothing else: scripts read it
