"""The form of a workflow: what was typed, what a link or an earlier run filled in, and why it did not start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from secrets import token_urlsafe

from django.contrib.auth.models import User
from django.db.models import QuerySet

from agents.engine.ledger import JSON
from agents.engine.references import secret_keys
from agents.engine.schema import parse
from agents.engine.secrets import is_reference
from conversations.display.call import CallField, DisplayedCall, display_call
from conversations.display.schema_form import FormField, SchemaForm, label_for, properties_of
from conversations.models import Conversation, ConversationKind, Prompt
from conversations.prompts.startable import InvalidInput
from workflows.answer import fields_to_fill
from workflows.definition import Workflow
from workflows.files import given_files, upload_fields
from workflows.line import Line
from workflows.pages.description import Description
from workflows.pages.uploads import in_words, with_files

FROM_LINK = "Filled in by a link."
SCHEDULE = "due"
"""What the names of the fields begin with that say when it is to run."""
CHATS_MOST = 100
"""Chats to choose from as a workspace; an older one is reached from its own page."""


@dataclass
class RunForm:
    """The form with which a person starts a workflow.

    `posted` is what was submitted. `chat`: the conversation in which it would run; None: one of its own. `origin`: the
    chat from which it was opened; there is no other to choose. `filled` are the labels of fields that a link filled in,
    `unknown` the names in it that the form does not have, `again` the run whose input it shows, `unfit` the labels of
    those of its values that the form, which has changed since, does not accept any more.

    `described`: what the person wrote of it in their own words, and what came of that.

    `upload_errors`: why files that were sent with it were not stored, by name of their field.

    `problem` says why nothing has started, `taken` is the conversation in which a turn is in progress, or in which this
    form has started a run before.
    """

    workflow: Workflow
    user: User
    posted: Mapping[str, str] | None = None
    chat: Conversation | None = None
    origin: Conversation | None = None
    input: Mapping[str, JSON] = field(default_factory=dict)
    filled: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    again: Prompt | None = None
    unfit: list[str] = field(default_factory=list)
    described: Description = field(default_factory=Description)
    problem: str = ""
    taken: Conversation | None = None
    workspace_error: str = ""
    upload_errors: Mapping[str, list[str]] = field(default_factory=dict)
    key: str = field(default_factory=lambda: token_urlsafe(16))

    @cached_property
    def schema_form(self) -> SchemaForm:
        """Its fields."""
        return SchemaForm(
            self.workflow.schema,
            self.input,
            self.posted,
            errors={name: [*why] for name, why in self.upload_errors.items()},
            anew=True,
        )

    @property
    def fields(self) -> list[FormField]:
        """Its fields, with the files that were uploaded for them."""
        return with_files(self.schema_form.fields, self.workflow, self.user, self.chat)

    @property
    def others(self) -> list[str]:
        """Errors that belong to none of its fields."""
        return self.schema_form.others

    @property
    def takes_files(self) -> bool:
        """Whether files are uploaded with it."""
        return bool(upload_fields(self.workflow.input))

    def fill(self, texts: Mapping[str, str]) -> None:
        """Fill in fields by name from the texts of a link, `name:` for JSON. What is wrong with them, the fields say.

        Secrets and uploaded files are left out: an address is no place for them.
        """
        in_json = frozenset(name.removesuffix(":") for name in texts if name.endswith(":"))
        given = {name.removesuffix(":"): text for name, text in texts.items()}
        known = properties_of(self.workflow.schema)
        told = {name: given[name] for name in known if name in given and name not in form_only(self.workflow)}
        form = Line(self.workflow, told, in_json).form
        wrong = {place: why for place, why in form.errors.items() if place.partition(".")[0] in told}
        notes = dict.fromkeys(told, FROM_LINK)
        focus = None if told else True  # what says so stands above the fields
        self.schema_form = SchemaForm(self.workflow.schema, {}, form.posted, errors=wrong, notes=notes, focus=focus)
        self.filled = [label_for(name, str(known[name].get("title", ""))) for name in told]
        self.unknown = [name for name in given if name not in known]

    def mark_unfit(self) -> None:
        """Say at the fields which values of the input are not accepted any more. They stay, to be changed."""
        try:
            self.workflow.checked(dict(self.input), self.user)
        except InvalidInput as error:
            told = {place: why for place, why in error.fields.items() if place.partition(".")[0] in self.input}
            self.refuse(InvalidInput(told))
            known = properties_of(self.workflow.schema)
            wrong = dict.fromkeys(place.partition(".")[0] for place in told)
            self.unfit = [label_for(name, str(known.get(name, {}).get("title", ""))) for name in wrong]

    def payload(self) -> dict[str, JSON] | None:
        """Return the input that was typed; None if it is not one that the workflow accepts: the fields say why."""
        form = self.schema_form
        found = form.payload()
        form.errors = in_words(form.errors, self.workflow, self.upload_errors)
        try:
            self.workflow.checked(found, self.user)
        except InvalidInput as error:
            self.refuse(error)
        return None if form.errors else found

    def refuse(self, error: InvalidInput) -> None:
        """Show these errors at the fields. A field that is already marked as wrong keeps its own words."""
        marked = {place.partition(".")[0] for place in self.schema_form.errors}
        for place, why in error.fields.items():
            if place.partition(".")[0] not in marked:
                self.schema_form.errors.setdefault(place, []).extend(why)

    @property
    def can_be_described(self) -> bool:
        """Whether a model can fill in some of it."""
        return bool(fields_to_fill(self.workflow.input)["properties"])

    @property
    def has_secrets(self) -> bool:
        """Whether it asks for secrets, which no page keeps."""
        return bool(secret_fields(self.workflow))

    @property
    def can_run_later(self) -> bool:
        """Whether it may start while nobody is there, with what this form asks for."""
        return self.workflow.schedulable and self.workflow.workspace != "required" and not self.takes_files

    @property
    def wrong(self) -> list[FormField]:
        """The fields that need a change."""
        return [each for each in self.schema_form.fields if each.wrong]

    @property
    def refused(self) -> bool:
        """Whether it was submitted, and nothing has started."""
        return bool(self.problem or self.workspace_error or (self.posted is not None and self.schema_form.errors))

    @cached_property
    def chats(self) -> list[Conversation]:
        """The person's chats to choose from, the newest first; only the one from which the form was opened."""
        if self.origin:
            return [self.origin]
        newest = list(own_chats(self.user).filter(archived_at=None).order_by("-updated_at")[:CHATS_MOST])
        return newest if self.chat is None or self.chat in newest else [self.chat, *newest]

    @property
    def kept(self) -> list[tuple[str, str]]:
        """What was submitted, to submit it again, but for the secrets."""
        own = ("csrfmiddlewaretoken", "key", "confirmed", "change", "later", *(each.key for each in self.secrets))
        kept = {name: text for name, text in (self.posted or {}).items() if name not in own}
        return [(name, text) for name, text in kept.items() if not name.startswith(f"{SCHEDULE}-")]

    @property
    def secrets(self) -> list[FormField]:
        """The fields of secrets that were filled in: no page shows what was typed, so it is typed once more."""
        typed = self.posted or {}
        return [each for each in self.schema_form.fields if each.kind == "secret" and typed.get(each.key)]

    def shown(self, payload: dict[str, JSON]) -> DisplayedCall:
        """Return this input for display, with the defaults of what was left out, and without its secrets."""
        payload = given_files(self.workflow.input, payload, self.user)[0]
        secrets = {key: value for key, value in self.workflow.taken_out(payload)[0].items() if is_reference(value)}
        whole = parse(self.workflow.input, payload).model_dump(mode="json", by_alias=True) | secrets
        call = display_call(self.workflow.policy_name, whole, schema=self.workflow.schema)
        fields = {each.name: each for each in SchemaForm(self.workflow.schema, whole).fields}
        return replace(call, fields=[_in_words(each, fields[each.name]) for each in call.fields])


def _in_words(shown: CallField, field: FormField) -> CallField:
    """Return a field of an input by its label, and what is chosen in it as people read it."""
    text = shown.text if field.kind in ("line", "text", "lines", "json", "kept") else field.words
    return CallField(field.label, "" if text in ("[]", "{}") else text, "\n" in text)


def own_chats(user: User) -> QuerySet[Conversation]:
    """Return the chats of this person, in which workflows can run."""
    return Conversation.objects.visible_to(user).filter(kind=ConversationKind.CHAT)


def secret_fields(workflow: Workflow) -> set[str]:
    """Return the names of the fields whose values must stand in no address and no later form."""
    return set(secret_keys(workflow.input))


def form_only(workflow: Workflow) -> set[str]:
    """Return the names of the fields that no link and no line of a chat fills in: secrets, and uploaded files."""
    return {*secret_keys(workflow.input), *upload_fields(workflow.input)}
