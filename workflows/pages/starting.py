"""Starting a run from a form: what each refusal means to the person, with everything typed kept."""

from __future__ import annotations

from agents.engine.ledger import JSON
from conversations.database.busy import reporting_busy
from conversations.models import Conversation, Prompt
from conversations.pages.chat.views import REFUSAL_STATUS, REFUSED
from conversations.prompts.idempotency import KeyReused
from conversations.prompts.start import TurnInProgress
from conversations.prompts.startable import InvalidInput, NotAllowed
from workflows.pages.form import RunForm
from workflows.running import start_run

STARTED_BEFORE = "This form has already started a run, with other values. Nothing new has started."


def start(form: RunForm, payload: dict[str, JSON], key: str) -> Prompt | int:
    """Start what the form says, and return its prompt; or, if nothing started, the status, with the reason in the form.

    `key`: that of the form. A new one is put into it where its own belongs to a run.
    """
    try:
        with reporting_busy():
            return start_run(form.workflow, form.user, payload, conversation=form.chat, key=key)
    except InvalidInput as error:
        form.refuse(error)
        return 400
    except TurnInProgress:
        form.taken = form.chat
        form.workspace_error = "A turn is in progress in this chat. Wait until it has ended, or choose another."
        return 409
    except KeyReused as error:
        form.taken = Conversation.objects.visible_to(form.user).filter(prompts=error.prompt).first()
        form.problem = STARTED_BEFORE
        return 409
    except REFUSED as error:
        why = form.workflow.why_not(form.user) if isinstance(error, NotAllowed) else None
        form.problem = f"Nothing has started. {why or error}"
        form.key = key or form.key
        return REFUSAL_STATUS.get(type(error), 400)
