"""`manage.py kill_switch on|off|status`: the kill switch, for when no page can be reached."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conversations.prompts.killswitch import active_switch, actor_name, turn_off, turn_on


class Command(BaseCommand):
    help = "Stop all turns at once (on --reason WHY), let them go on (off), or show whether the switch is on (status)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("turn", choices=["on", "off", "status"])
        parser.add_argument(
            "--reason", default="", help="why; everybody whose work is stopped will read it (required for on)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["turn"] == "on":
            try:
                turn_on(None, options["reason"])
            except ValueError as error:
                raise CommandError(f"{error} Use --reason.") from error
        elif options["turn"] == "off":
            turn_off(None)
        if switch := active_switch():
            since = f"{switch.on_at:%Y-%m-%d %H:%M} UTC"
            self.stdout.write(f"On since {since}, by {actor_name(switch.on_by)}: {switch.reason}")
        else:
            self.stdout.write("Off: turns run.")
