"""Running a workflow: one function for the pages, the API and the command."""

from __future__ import annotations

from django.contrib.auth.models import User

from agents.engine.ledger import JSON
from conversations.models import Conversation, ConversationKind, Origin, Prompt
from conversations.prompts import startable
from conversations.prompts.start import start_prompt
from workflows.definition import Workflow


def start_run(
    workflow: Workflow, by: User, input: dict[str, JSON], *, conversation: Conversation | None = None, key: str = ""
) -> Prompt:
    """Start a run with this input, by default in a new conversation of its own, and return its prompt.

    In a `conversation` of the same person it takes the slot, like a message. `key`: the sender's idempotency key.

    Raises NotAllowed if this person may not run it, InvalidInput for an input that it does not accept, and what
    start_prompt raises. Then nothing was started.
    """
    startable.find_for(by, workflow.policy_name)
    where = conversation or Conversation(owner=by, kind=ConversationKind.RUN, title=workflow.title)
    return start_prompt(where, by, policy=workflow.policy_name, payload=input, origin=Origin.WORKFLOW, key=key)
