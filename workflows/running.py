"""Running a workflow, filling in its form, and the workflows of a person: for the pages, the API and the command."""

from __future__ import annotations

from django.contrib.auth.models import User

from agents.engine.ledger import JSON
from conversations.models import Conversation, ConversationKind, Origin, Prompt
from conversations.prompts import startable
from conversations.prompts.start import start_prompt
from conversations.prompts.startable import InvalidInput
from workflows import discovery
from workflows.definition import Workflow
from workflows.line import Line, parse_line
from workflows.permissions import SeenWorkflow, visible_to
from workflows.policies import FILL

NEEDS_CHAT = "It works on the files of one of your chats: choose which."


def seen_by(user: User) -> list[SeenWorkflow[Workflow]]:
    """Return the workflows that this person sees, by category and title, with why they may not run some."""
    return visible_to(user, discovery.installed().values())


def seen(user: User, name: str) -> SeenWorkflow[Workflow] | None:
    """Return the workflow of this name, None if there is none that this person sees."""
    named = discovery.installed().get(name)
    return next(iter(visible_to(user, [named])), None) if named else None


def line_from(text: str) -> Line[Workflow] | None:
    """Return the line that this message is; None for an ordinary message. Raises BadLine, see parse_line.

    Whoever wrote it may not see that workflow, or not any more. It is a line all the same: a model, and everybody who
    reads the chat, would be told a password in it.
    """
    return parse_line(text, discovery.installed().get)


def start_run(
    workflow: Workflow,
    by: User,
    input: dict[str, JSON],
    *,
    conversation: Conversation | None = None,
    key: str = "",
    origin: Origin = Origin.WORKFLOW,
    together: str = "",
) -> Prompt:
    """Start a run with this input, by default in a new conversation of its own, and return its prompt.

    In a `conversation` of the same person it takes the slot, like a message. `key`: the sender's idempotency key.
    `origin`: how it was started, for the history; by default from a page.
    `together`: what it is a part of, see start_prompt.

    Raises NotAllowed if this person may not run it, InvalidInput for an input that it does not accept, and what
    start_prompt raises. Then nothing was started.
    """
    startable.find_for(by, workflow.policy_name)
    if workflow.workspace == "required" and conversation is None:
        raise InvalidInput({"conversation": [NEEDS_CHAT]})
    where = conversation or Conversation(owner=by, kind=ConversationKind.RUN, title=workflow.title)
    policy = workflow.policy_name
    return start_prompt(where, by, policy=policy, payload=input, origin=origin, key=key, together=together)


def start_filling(
    workflow: Workflow, by: User, text: str, typed: dict[str, str] | None = None, *, key: str = ""
) -> Prompt:
    """Start a turn that reads what this person wants of a workflow, in a hidden conversation of its own.

    `typed`: what stands in its form meanwhile, without secrets. Raises InvalidInput if that is too much, and what
    start_prompt raises.
    """
    payload: dict[str, JSON] = {"workflow": workflow.name, "text": text, "typed": {**(typed or {})}}
    where = Conversation(owner=by, kind=ConversationKind.HIDDEN, title=workflow.title)
    return start_prompt(where, by, policy=FILL, payload=payload, visible=False, key=key)
