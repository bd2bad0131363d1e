from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from agents.engine.root import WORKFLOW
from conversations.display.faithful import first_line, plain
from conversations.management.arguments import user_named
from conversations.management.printing import flushed
from conversations.models import Prompt, State
from workflows.history import STARTED_BY, RunFilter, runs_of, started_by
from workflows.records import lines_of

LINE_MOST = 120
"""Characters of the line with which a run was started."""


class Command(BaseCommand):
    help = (
        "List the runs of a person, the newest first, as their page of runs does: id, time, state, how it was started,"
        " the line that starts the same run, and below it what came of it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", required=True, metavar="USERNAME", help="whose runs")
        parser.add_argument("--workflow", default="", metavar="NAME", help="only runs of this workflow")
        parser.add_argument("--state", default="", choices=State.values, help="only runs in this state")
        parser.add_argument("--started-by", default="", choices=list(STARTED_BY), help="only runs started this way")
        parser.add_argument("--starred", action="store_true", help="only runs that they starred")
        parser.add_argument("--search", default="", metavar="WORDS", help="only runs with all these words in their"
                            " line, or all in what came of it")  # fmt: skip
        parser.add_argument("--most", type=int, default=20, metavar="NUMBER", help="at most so many; default 20")

    def handle(self, *_args: object, **options: Any) -> None:
        chosen = RunFilter(
            options["workflow"], options["state"], options["started_by"], options["starred"], options["search"]
        )
        runs = list(runs_of(user_named(options["user"]), chosen)[: max(options["most"], 0)])
        results = lines_of(runs)
        with flushed(self.stdout):
            for run in runs:
                for line in _lines(run, results.get(run.pk, "")):
                    self.stdout.write(line)
            if not runs:
                self.stdout.write("No run matches.")


def _lines(run: Prompt, result: str) -> Iterator[str]:
    began = timezone.localtime(run.created_at).strftime("%Y-%m-%d %H:%M")
    line = first_line(run.input or run.policy.removeprefix(WORKFLOW), LINE_MOST)
    yield f"{run.pk}  {began}  {run.state}  {started_by(run)}  {plain(line)}"
    if result:
        yield f"    {plain(result)}"
