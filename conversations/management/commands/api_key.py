from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from conversations.accounts.keys import LIMITS_MOST, make_key
from conversations.management.arguments import user_named
from conversations.management.printing import reporting
from conversations.models import Scope

DEFAULT = ",".join((Scope.READ, Scope.CHAT, Scope.DECIDE))
"""The scopes of a key that names none: what they were before there were others, so that no script gets more."""


class Command(BaseCommand):
    help = "Create an API key for a user and print it. It cannot be shown again: only its hash is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", help="the key's owner: it may do what this user may")
        parser.add_argument("--name", default="manage.py api_key", help="what the key is for")
        parser.add_argument(
            "--scopes",
            default=DEFAULT,
            help=f"any of {','.join(Scope.values)}; default: {DEFAULT}. All but context and"
            " passthrough, which are for OpenAI clients, include read",
        )
        parser.add_argument("--days", type=int, help="days until it expires; default: never")
        parser.add_argument("--models", default="", help="with passthrough: the models that it may use; default: all")
        parser.add_argument("--requests-a-minute", type=int, help="with passthrough; default: no limit of its own")
        parser.add_argument("--requests-a-day", type=int, help="with passthrough, in 24 hours; default: likewise")
        parser.add_argument("--tokens-a-day", type=int, help="with passthrough, in 24 hours; default: likewise")

    def handle(self, *_args: object, **options: Any) -> None:
        user = user_named(options["username"])
        scopes = [scope.strip() for scope in options["scopes"].split(",") if scope.strip()]
        with reporting(ValueError):
            _, text = make_key(
                user,
                options["name"],
                scopes,
                options["days"],
                only_models=options["models"].split(","),
                **{limit: options[limit] for limit in LIMITS_MOST},
            )
        self.stdout.write(text)  # nothing else: scripts read it
