from __future__ import annotations

from django.core.management.base import BaseCommand

from agents.search.rebuilding import rebuild


class Command(BaseCommand):
    help = (
        "Write down anew by which words blueprints and memories are found. The site does so by itself when one is"
        " saved, and at a migration if AGENTSITE_SEARCH_LANGUAGE has changed. Run it after another program has changed"
        " their tables. The site may run meanwhile."
    )

    def handle(self, *_args: object, **_options: object) -> None:
        rows = rebuild()
        self.stdout.write(f"The words of {rows:,} {'text' if rows == 1 else 'texts'} are written anew.")
