from __future__ import annotations

import json
import mimetypes
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.core.management.base import BaseCommand, CommandError, CommandParser, DjangoHelpFormatter
from django.db import Error

from agents.engine.decisions import Ask
from agents.engine.ledger import JSON
from agents.engine.outputs.kinds import ResultOutput, TextOutput, ToolOutput
from agents.engine.references import secret_keys
from conversations.approvals.edits import as_json_object
from conversations.database.commits import Watch
from conversations.display.faithful import first_line, plain
from conversations.files import pending
from conversations.files.uploads import BadFile, Upload
from conversations.management import arguments
from conversations.models import Conversation, Origin, Output, Prompt, State
from conversations.prompts.killswitch import SiteStopped
from conversations.prompts.start import Deactivated, TurnInProgress
from conversations.prompts.startable import InvalidInput, NotAllowed
from conversations.push.watch import open_watch
from conversations.usage.quotas import OverQuota
from workflows import discovery
from workflows.definition import Workflow
from workflows.files import upload_fields
from workflows.line import as_word, read_words
from workflows.running import start_run

FAILED, OPEN, NOT_STARTED = 1, 2, 3
"""Exit codes; 0 is a run that completed."""
REFUSED = (NotAllowed, TurnInProgress, OverQuota, SiteStopped, Deactivated)
ASKS = {Ask.APPROVE.value: "an approval", Ask.QUESTION.value: "an answer", Ask.INTERRUPTED.value: "a decision"}
LOOK_SECONDS = 1.0
"""How often a run is looked at, though nothing said that it changed."""
COMMAND_LINE = (
    "everybody on this machine can read a command line. Give it in a file that only you can read, with --input FILE, or"
    " on stdin, with --input -"
)
EXIT_CODES = """
Exit codes say how the run stands when the command ends:
  0  it completed
  1  it failed or was stopped
  2  it is still open: so it is always without --wait, and if you press Ctrl-C; also a usage error
  3  nothing was started: no such workflow or person, an input that it does not accept, or not now
"""


class Command(BaseCommand):
    help = "Start a workflow by its name, as a user of the site. Prints the id of its prompt and its page."

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, epilog=EXIT_CODES, formatter_class=_Formatter, **options)
        # Words may stand before, between and behind options; argparse takes only the first ones by itself.
        parser.parse_args = parser.parse_intermixed_args  # type: ignore[method-assign]
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the name of the workflow; `manage.py agents` lists them")
        parser.add_argument("--user", required=True, help="who starts it: it may do what this user may")
        parser.add_argument("--input", metavar="FILE", help="its input, as a JSON object in this file; - reads stdin")
        parser.add_argument(
            "words", nargs="*", metavar="key=value",
            help="fields of its input, as in its form; key:=json for any value as JSON, and other words are free text,"
            " as in a line of a chat. They replace those of the file. A file to upload is given by its path on this"
            " machine.",
        )  # fmt: skip
        parser.add_argument("--conversation", metavar="ID", help="start it in this conversation of theirs")
        parser.add_argument("--wait", action="store_true", help="wait for its end, and print its result")

    def handle(self, *_args: object, **options: Any) -> None:
        try:
            run = self._start(options)
        except CommandError as error:
            error.returncode = NOT_STARTED
            raise
        page = f"{settings.AGENTSITE_URL}{run.conversation.get_absolute_url()}#t-{run.pk}"
        self.stdout.write(f"Started prompt {run.pk}: {page}")
        if not options["wait"]:
            raise SystemExit(OPEN)
        try:
            with closing(open_watch()) as watch:
                self._wait(run, watch)
        except KeyboardInterrupt:
            raise CommandError("The run continues without you.", returncode=OPEN) from None
        except Error as error:
            raise CommandError(f"The database does not answer; the run may go on: {error}", returncode=OPEN) from None
        self._report(run)

    def _start(self, options: dict[str, Any]) -> Prompt:
        """Start the run. Raises CommandError."""
        user = arguments.user_named(options["user"])
        workflow = discovery.installed().get(options["name"])
        if workflow is None:
            raise CommandError(f"There is no workflow {options['name']!r}. `manage.py agents` lists what there is.")
        if why := workflow.why_not(user):
            raise CommandError(f"{user.get_username()} may not run {workflow.name}: {why}")
        input, where = _input(workflow, options), _conversation(options["conversation"], user)
        try:
            with _uploaded(workflow, user, input) as given:
                return start_run(workflow, user, given, conversation=where, origin=Origin.COMMAND)
        except InvalidInput as error:
            raise _not_accepted(error.fields) from None
        except REFUSED as error:
            raise CommandError(str(error)) from None

    def _wait(self, run: Prompt, watch: Watch) -> None:
        """Return when the run has ended. Says once what each wait is for."""
        told: set[str] = set()
        while True:
            run.refresh_from_db()
            if run.ended:
                return
            for reason in _reasons(run):
                if reason not in told:
                    told.add(reason)
                    self.stdout.write(reason)
                    self.stdout.flush()
            watch.wait(LOOK_SECONDS)

    def _report(self, run: Prompt) -> None:
        """Print what came of it. Raises CommandError unless it completed."""
        entries = [row.entry() for row in Output.objects.of(run).filter(path="").order_by("position")]
        if run.state == State.COMPLETED:
            for entry in entries:
                if isinstance(entry, ResultOutput):
                    self.stdout.write(_shown(entry.output))
            return
        why = [entry.text for entry in entries if isinstance(entry, TextOutput)]
        how = "was stopped" if run.state == State.CANCELLED else "failed"
        raise CommandError("\n".join([f"The run {how} ({run.stop_reason}).", *why]), returncode=FAILED)


class _Formatter(DjangoHelpFormatter):
    """Help that keeps the lines of the exit codes."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        kept = text.startswith("\n")
        return text.strip("\n") if kept else super()._fill_text(text, width, indent)


def _input(workflow: Workflow, options: dict[str, Any]) -> dict[str, JSON]:
    """Return the input of the file, with the fields of the command line in place of its own. Raises CommandError."""
    given = _read(options["input"]) if options["input"] else {}
    line = read_words(workflow, [as_word(each) for each in options["words"]])
    if shown := sorted(secret_keys(workflow.input).keys() & line.values.keys()):
        raise CommandError(f"Nothing was started: {shown[0]} is a secret, and {COMMAND_LINE}")
    # What the file says is not missing here.
    named = {*line.values, *line.problems}
    wrong = {place: why for place, why in line.form.errors.items() if place.partition(".")[0] in named}
    if wrong:
        raise _not_accepted(wrong)
    return given | {name: value for name, value in line.input.items() if name in line.values}


@contextmanager
def _uploaded(workflow: Workflow, user: User, input: dict[str, JSON]) -> Iterator[dict[str, JSON]]:
    """Upload the files whose paths on this machine an input gives, and yield it with their tokens instead.

    If nothing starts, they are removed again. Raises InvalidInput.
    """
    paths = {key: path for key in upload_fields(workflow.input) if isinstance(path := input.get(key), str)}
    tokens: dict[str, JSON] = {}
    try:
        for key, path in paths.items():
            tokens[key] = _upload(user, key, Path(path))
        yield input | tokens
    finally:
        for token in tokens.values():
            pending.discard(user, str(token))  # there is none if the run has taken it


def _upload(user: User, key: str, path: Path) -> str:
    try:
        if not path.is_file():
            raise InvalidInput({key: [f"{path} is not a file on this machine."]})
        kind = mimetypes.guess_type(path.name)[0] or ""
        with path.open("rb") as content:
            return pending.keep(user, Upload.of(UploadedFile(content, path.name, kind, path.stat().st_size))).token
    except OSError as error:
        raise InvalidInput({key: [f"{path} cannot be read: {error.strerror}."]}) from error
    except BadFile as error:
        raise InvalidInput({key: [str(error)]}) from error


def _read(file: str) -> dict[str, JSON]:
    """Return the JSON object in a file. Raises CommandError."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        return as_json_object(json.loads(text))
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise CommandError(f"{'What stdin has' if file == '-' else file} is no JSON object: {error}.") from None


def _conversation(pk: str | None, user: User) -> Conversation | None:
    if pk is None:
        return None
    if not pk.isascii() or not pk.isdigit():
        raise CommandError(f"{pk[:40]!r} is not a conversation id: use a whole number from 1 up.")
    found = Conversation.objects.visible_to(user).filter(pk=int(pk)).first()
    if found is None:
        raise CommandError(f"{user.get_username()} has no conversation {pk}.")
    return found


def _not_accepted(fields: dict[str, list[str]]) -> CommandError:
    lines = (f"  {place or 'input'}: {' '.join(why)}" for place, why in fields.items())
    return CommandError("\n".join(["The input is not accepted:", *lines]))


def _reasons(run: Prompt) -> list[str]:
    """Return what the run waits for now, in words."""
    found = []
    for row in Output.objects.pending().filter(prompt=run).order_by("position"):
        entry = row.entry()
        if isinstance(entry, ToolOutput) and entry.approval:
            gate = entry.approval
            asked = entry.input.get("question") if gate.ask == Ask.QUESTION else gate.title
            found.append(f"Waits for {ASKS[gate.ask]}: {plain(first_line(asked or entry.tool))} (approval {row.pk})")
    if run.state == State.SLEEPING and run.wake_at:
        found.append(f"Sleeps until {run.wake_at.isoformat()}")
    return found


def _shown(output: JSON) -> str:
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)
