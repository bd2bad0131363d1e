"""Lines in the chat: a message `/name key=value ...` starts a workflow, or opens its form filled."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

from django.urls import reverse

from conversations.models import ConversationKind, Prompt
from conversations.prompts.lines import SentMessage
from conversations.prompts.start import BadInput
from conversations.prompts.startable import InvalidInput, NotAllowed
from workflows.definition import Workflow
from workflows.line import BadLine, Line
from workflows.pages.form import form_only
from workflows.running import line_from, start_run

ADDRESS_MOST = 4_000
"""Characters of an address that every browser and server takes."""
WITH_FILES = "A workflow takes no files from a line. Send the files first, then start it in the same chat."


def start_line(message: SentMessage) -> Prompt | str | None:
    """Start the workflow that this message names, in its conversation; see `conversations.prompts.lines`.

    Without a conversation the run has one of its own. Raises BadInput for a line that cannot be read.
    """
    try:
        line = line_from(message.text)
    except BadLine as error:
        raise BadInput(str(error)) from error
    if line is None:
        return None
    workflow = line.workflow
    if why := workflow.why_not(message.by):
        raise NotAllowed(workflow.policy_name, why)
    if message.has_files:
        raise BadInput(WITH_FILES)
    if line.problems:
        raise BadInput(_sentences(line.problems.items()))
    chat = message.conversation
    if chat and chat.kind != ConversationKind.CHAT:
        raise BadInput("Start it from its own page: nothing is started from within a run.")
    form = _form_address(line, message)
    elsewhere = bool(form_only(workflow) & line.values.keys())  # a secret is entered where nobody reads it
    if workflow.confirm or line.form.errors or elsewhere:
        return form
    try:
        return start_run(workflow, message.by, line.input, conversation=chat, key=message.key)
    except InvalidInput:
        return form


def _form_address(line: Line[Workflow], message: SentMessage) -> str:
    """Return the address of the form with what the line says, but no secrets and files.

    Raises BadInput if it is too long.
    """
    workflow, chat = line.workflow, message.conversation
    page = reverse("workflow-in", args=[workflow.name, chat.pk]) if chat else workflow.page
    left_out = form_only(workflow)
    said = [(f"{name}:" if name in line.in_json else name, text) for name, text in line.values.items()]
    address = f"{page}?{urlencode([(name, text) for name, text in said if name.rstrip(':') not in left_out])}".rstrip(
        "?"
    )
    if len(address) > ADDRESS_MOST and (line.form.errors or workflow.confirm):
        wrong = _sentences(line.form.errors.items())
        raise BadInput(f"This line is too long to fill in the form. {wrong or 'Open the form instead.'}")
    return address if len(address) <= ADDRESS_MOST else page


def _sentences(problems: Iterable[tuple[str, list[str]]]) -> str:
    return " ".join(f"{name}: {' '.join(why)}" if name else " ".join(why) for name, why in problems)
