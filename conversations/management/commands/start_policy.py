from __future__ import annotations

import json
import sys
from argparse import ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.engine.ledger import JSON
from conversations.management import arguments
from conversations.management.printing import reporting
from conversations.models import Conversation
from conversations.prompts.killswitch import SiteStopped
from conversations.prompts.start import Deactivated, TurnInProgress, start_prompt
from conversations.prompts.startable import InvalidInput, NotAllowed, UnknownPolicy, find_for
from conversations.usage.quotas import OverQuota

REFUSED = (NotAllowed, TurnInProgress, OverQuota, SiteStopped, Deactivated)
"""Why it may not start now, or not for this person: exit code 1."""


class Command(BaseCommand):
    help = (
        "Start a policy by its name, in a new conversation of a user. Prints the id of its prompt and its page. Exit"
        " codes: 0 started; 1 refused, nothing was started; 2 no such policy, or an input that it does not accept."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the name of the policy; `manage.py agents` lists them")
        parser.add_argument("--user", required=True, help="who starts it: it may do what this user may")
        parser.add_argument("--input", type=_json, default={}, help="its payload, as JSON; - reads it from stdin")
        parser.add_argument("--conversation", type=arguments.conversation_id, help="start it in this one of theirs")
        parser.add_argument("--tier", choices=["normal", "high"], default="normal", help="the tier of the model")

    def handle(self, *_args: object, **options: Any) -> None:
        user = arguments.user_named(options["user"])
        conversation = Conversation(owner=user)
        if options["conversation"]:
            conversation = arguments.conversation_with(options["conversation"])
        if conversation.owner_id != user.pk:
            raise CommandError(f"Conversation {conversation.pk} is not {user.get_username()}'s.")
        try:
            with reporting(*REFUSED):
                find_for(user, options["name"])
                prompt = start_prompt(
                    conversation, user, policy=options["name"], payload=options["input"], tier=options["tier"]
                )
        except InvalidInput as error:
            lines = (f"  {place or 'input'}: {' '.join(why)}" for place, why in error.fields.items())
            raise CommandError("\n".join(["The input is not accepted:", *lines]), returncode=2) from None
        except UnknownPolicy as error:
            raise CommandError(f"{error} `manage.py agents` lists what there is.", returncode=2) from None
        page = f"{settings.AGENTSITE_URL}{prompt.conversation.get_absolute_url()}#t-{prompt.pk}"
        self.stdout.write(f"Started prompt {prompt.pk}: {page}")


def _json(text: str) -> dict[str, JSON]:
    """Parse a JSON object. Raises ArgumentTypeError."""
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        raise ArgumentTypeError(f"it is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise ArgumentTypeError("it must be a JSON object, such as {}.")
    return value
