"""`manage.py kill_switch on|off`: stop all turns, or let them go on, where no page can be reached."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conversations.prompts.killswitch import person_of, standing, turn_off, turn_on


class Command(BaseCommand):
    """See the module."""

    help = "Stops all turns at once (on --reason WHY), lets them go on (off), or says how the switch stands (status)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to do, and why."""
        parser.add_argument("turn", choices=["on", "off", "status"])
        parser.add_argument("--reason", default="", help="why; everybody whose work stops reads it (needed for on)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Turn it, and say how it stands then."""
        if options["turn"] == "on":
            try:
                turn_on(None, options["reason"])
            except ValueError as error:
                raise CommandError(f"{error} Give --reason.") from error
        elif options["turn"] == "off":
            turn_off(None)
        if switch := standing():
            since = f"{switch.on_at:%Y-%m-%d %H:%M} UTC"
            self.stdout.write(f"On since {since}, by {person_of(switch.on_by)}: {switch.reason}")
        else:
            self.stdout.write("Off: turns run.")
