"""Filling in a form from what a person wrote in their own words: asking for it, and showing what came of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from django.contrib.auth.models import User
from django.db.models import QuerySet

from agents.engine.ledger import JSON, digest, valid_text
from agents.engine.secrets import RunSecrets, hide_in
from conversations.database.busy import reporting_busy
from conversations.display.schema_form import SchemaForm
from conversations.ledger.redacted import is_redacted
from conversations.models import ConversationKind, Prompt, State, Step
from conversations.pages.chat.views import REFUSAL_STATUS, REFUSED
from conversations.prompts.startable import InvalidInput
from workflows.answer import sift
from workflows.definition import Workflow
from workflows.pages.description import Description
from workflows.pages.form import RunForm, secret_fields
from workflows.policies import FILL, SECONDS, TEXT_MOST
from workflows.running import start_filling

FIELD = "description"
"""The name under which a form sends the text."""
NOT_INPUT = ("csrfmiddlewaretoken", "key", FIELD)
"""What a form sends besides what stands in its fields."""
KEY = re.compile(r"([a-z-]+-)?(?P<number>\d{1,4})(\..*)?", re.DOTALL)
"""The name under which a field is sent: `line-3`, `workspace-file-3`, and with its parts `choices-3.0`, `3.line-0`."""

FILLED_IN = "Filled in from your description."
NO_TEXT = "Describe what you want first."
TOO_LONG = "A description can have at most {most:,} characters; this one has {length:,}. Shorten it."
TOO_MUCH = "The form holds too much to be kept meanwhile. Describe it before you fill in the long fields."
TOLD_TOO = (
    "A secret that you typed also stands in the description or in another field, which is recorded. Take it out there."
)
TOOK_TOO_LONG = f"The model did not answer within {SECONDS} seconds. Fill in the form yourself, or try again."
STOPPED = "Reading your description was stopped."
NO_ANSWER = "The model gave no answer that could be used. Fill in the form yourself, or try again."
FOUND_NOTHING = "No value for a field of this form was found in it. Fill in the form yourself, or say more."
REMOVED = "What the model answered has been removed from the record."


def ask(form: RunForm, text: str) -> Prompt | int:
    """Let a model read this text, and return the turn that does; or a status, with the reason in the form.

    What stands in the form's fields is kept with the turn, but for secrets.
    """
    text = valid_text(text).replace("\r\n", "\n").strip()
    form.described = Description(text)
    if not text or len(text) > TEXT_MOST:
        why = TOO_LONG.format(most=TEXT_MOST, length=len(text)) if text else NO_TEXT
        return _refused(form, why, 400)
    typed, secrets = _typed(form)
    with RunSecrets(secrets).hidden():
        if hide_in([text, typed], keys=True) != [text, typed]:
            return _refused(form, TOLD_TOO, 400)
    key = f"{FILL} {digest([(form.posted or {}).get('key', ''), form.workflow.name, text, typed])}"
    try:
        with reporting_busy():
            return start_filling(form.workflow, form.user, text, typed, key=key)
    except InvalidInput:
        return _refused(form, TOO_MUCH, 400)
    except REFUSED as error:
        return _refused(form, f"Nothing was filled in. {error}", REFUSAL_STATUS.get(type(error), 400))


def _refused(form: RunForm, why: str, status: int) -> int:
    form.described = replace(form.described, problem=why)
    return status


def _typed(form: RunForm) -> tuple[dict[str, str], dict[str, str]]:
    """Return what stands in the form by the names under which it was sent, without secrets; and these by field."""
    known = secret_fields(form.workflow)
    names = {number: each.name for number, each in enumerate(form.schema_form.fields) if each.name in known}
    sent = {key: valid_text(text) for key, text in (form.posted or {}).items() if key not in NOT_INPUT}
    secrets = {names[number]: text for key, text in sent.items() if text and (number := _field_of(key)) in names}
    return {key: text for key, text in sent.items() if _field_of(key) not in names}, secrets


def _field_of(key: str) -> int | None:
    """Return the number of the field in which what is sent under this key stands, or stands in a part of it."""
    found = KEY.fullmatch(key)
    return int(found["number"]) if found else None


def descriptions_of(user: User) -> QuerySet[Prompt]:
    """Return the turns that read what this person wrote of forms."""
    return Prompt.objects.owned_by(user).filter(conversation__kind=ConversationKind.HIDDEN, policy=FILL)


def told_of(workflow: Workflow, prompt: Prompt) -> dict[str, JSON] | None:
    """Return what such a turn was told of this workflow; None if it was of another one, or was taken out since."""
    said = _payload(prompt, "action_call")
    told: dict[str, JSON] = said.get("payload", {}) if said else {}
    return told if told.get("workflow") == workflow.name else None


def show(form: RunForm, prompt: Prompt, told: Mapping[str, JSON]) -> None:
    """Put into the form what a turn that has ended found, over what stood in it before."""
    typed: dict[str, str] = told["typed"]
    answer, problem = _answer(prompt)
    found = sift(form.workflow.input, answer)
    places = SchemaForm(form.workflow.schema, {}).places()
    over = {number for number, (name, _) in enumerate(places) if name in found.values}
    kept = {key: text for key, text in typed.items() if _field_of(key) not in over}
    notes = dict.fromkeys(found.values, FILLED_IN)
    form.schema_form = SchemaForm(form.workflow.schema, found.values, kept, notes=notes, anew=True)
    fields = form.schema_form.fields
    form.described = Description(
        told["text"],
        problem or ("" if found.values or found.not_fit else FOUND_NOTHING),
        filled=tuple(each for each in fields if each.name in found.values),
        not_fit=tuple(each for each in fields if each.name in found.not_fit),
        missing=tuple(each for each in fields if each.required and not each.words and each.name not in found.values),
    )


def _answer(prompt: Prompt) -> tuple[Mapping[str, JSON], str]:
    """Return the fields that a turn found; or none, and why."""
    if prompt.state == State.CANCELLED:
        return {}, STOPPED
    result = _payload(prompt, "action_result")
    if result is None:
        return {}, REMOVED
    if prompt.state == State.FAILED:
        late = "timeout" in (result.get("code"), prompt.stop_reason)
        return {}, TOOK_TOO_LONG if late else NO_ANSWER
    found = result.get("output")
    return (found, "") if isinstance(found, dict) else ({}, NO_ANSWER)


def _payload(prompt: Prompt, type: str) -> dict[str, JSON] | None:
    """Return the payload of this step of the turn itself; None if it has none, or it was redacted."""
    text = Step.objects.of(prompt).filter(path="", type=type).values_list("payload", flat=True).last()
    return None if text is None or is_redacted(text) else dict(json.loads(text))
