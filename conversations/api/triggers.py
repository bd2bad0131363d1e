"""Triggers over the API: what starts turns by itself, and what became of each time that one was due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from agents.engine.root import AGENT
from agents.plugins.triggers.schedule import BadSchedule, Schedule
from conversations.accounts.zones import zone_of
from conversations.api.bodies import NoFields, idempotency_key, read
from conversations.api.describe import IDEMPOTENCY, LIST, TRIGGERS, operation
from conversations.api.errors import Invalid, RequestRefused
from conversations.api.paging import paginate, paginate_together
from conversations.api.prompts import TURNS, scope_of
from conversations.api.trigger_shapes import (
    ChangedTrigger,
    Firing,
    FiringPage,
    NewTrigger,
    Secret,
    Trigger,
    TriggerFields,
    TriggerPage,
)
from conversations.api.views import ApiView, StartingView, require_scope
from conversations.models import Conversation, ConversationKind, Overlap, Scope
from conversations.models import Firing as FiringRow
from conversations.models import Trigger as TriggerRow
from conversations.models.trigger import STATES, TriggerQuerySet
from conversations.prompts.idempotency import request_digest
from conversations.prompts.startable import InvalidInput
from conversations.triggers import managing, slots
from conversations.triggers.firing import fire_if_due, start_again
from conversations.triggers.hooks import secrets
from conversations.triggers.hooks.secrets import LastSecret, TooManySecrets
from conversations.triggers.managing import TooMany, TriggerKeyReused

T = TypeVar("T")
FIELDS = {"seconds": "every_seconds", "expression": "cron"}
"""The fields whose names differ from those of a schedule."""


class Triggers(ApiView):
    """The list of triggers; making one."""

    scopes = TURNS

    @operation("List triggers", TriggerPage, parameters=TRIGGERS)
    def get(self, request: Request) -> Response:
        """List your triggers, the newest first."""
        state, mine = request.query_params.get("state", "all"), _mine(request)
        if state not in (*STATES, "all"):
            raise Invalid({"state": [f"Choose one of: {', '.join((*STATES, 'all'))}."]})
        now = slots.now()

        def shown(found: Sequence[TriggerRow]) -> list[Trigger]:
            return [Trigger.of(each, now) for each in found]

        return paginate_together(request, mine if state == "all" else mine.in_state(state), shown)

    @operation("Make a trigger", {201: Trigger}, request=NewTrigger, parameters=IDEMPOTENCY)
    def post(self, request: Request) -> Response:
        """Make a trigger, which starts a turn at a time, or again and again.

        It starts the agent with a `text`, or a `workflow` or a `policy` with its `input`, as you may start it now; it
        is checked again each time. 403 `forbidden` if you may not start it, 404 `unknown_policy` if there is none of
        this name, and 400 `invalid_input` for a schedule, a text or an input that cannot be, with each wrong field in
        `fields`, such as `cron` or `input.days`. An input cannot have secrets or uploaded files.

        Its turns stand in a conversation of its own; those of a workflow, each in a new one. A text that fires once can
        fire into a `conversation` of yours.

        With `webhook`, it fires by webhooks that are sent to its `url`. Only this response has the `text` of its first
        secret. A workflow is given what the `mapping` says.

        409 `too_many_triggers` if you have as many as one person may have. The same Idempotency-Key with the same
        request returns the same trigger; with a different one, 409 `idempotency_conflict`.

        With a key, it takes the scope `chat`; for a workflow, `workflows`.
        """
        body, key = read(request, NewTrigger), idempotency_key(request)
        policy = body.named_policy() or AGENT
        require_scope(request, scope_of(policy))
        chat = None if body.conversation is None else _chat(request, body.conversation)
        new = managing.NewTrigger(
            _schedule(body, zone := zone_of(request.user).key, Schedule(zone)),
            body.text or "",
            policy,
            body.input or {},
            body.name,
            body.tier,
            Overlap(body.overlap),
            body.webhook or "",
            _mapping(body) or {},
        )
        sent = request_digest([body.model_dump(mode="json")]) if key else ""
        key = f"api:{key}" if key else ""
        with transaction.atomic():
            made = _stored(lambda: managing.create(request.user, new, key=key, digest=sent, conversation=chat))
            secret = secrets.first(made) if made.hook else ""
        response = Response(Trigger.of(made, slots.now(), secret), status=201)
        response["Location"] = reverse("api-trigger", args=[made.pk])
        return response


class OneTrigger(ApiView):
    """One trigger."""

    scopes = TURNS

    @operation("Get a trigger", Trigger)
    def get(self, request: Request, pk: int) -> Response:
        """Return a trigger of yours as it stands now, with when it is due next."""
        return _response(_mine(request).get(pk=pk))

    @operation("Change a trigger", Trigger, request=ChangedTrigger)
    def patch(self, request: Request, pk: int) -> Response:
        """Change a trigger. From then on it is due as it says now; what it was due at before fires first.

        400 `invalid_input`, 403, 404 and 409 `too_many_triggers` are as for a new one, also for what you leave
        unchanged: one that is over needs a new time. With a key, it takes the scopes of what it starts before and
        after: `chat`, or `workflows`.
        """
        body = read(request, ChangedTrigger)
        with transaction.atomic():
            User.objects.select_for_update(no_key=True).get(pk=request.user.pk)  # two changes at once are both made
            trigger = _mine(request).get(pk=pk)
            new = _changed(trigger, body)
            for policy in (trigger.policy, new.policy):
                require_scope(request, scope_of(policy))
            changed = _stored(lambda: managing.change(trigger, new))
        return _response(changed)

    @operation("Delete a trigger", {204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a trigger with its history. The turns that it started stay.

        With a key, it takes the scope `chat`; for one of a workflow, `workflows` will do.
        """
        managing.delete(_to_stop(request, pk))
        return Response(status=204)


class Pause(ApiView):
    """Pausing a trigger."""

    scopes = TURNS

    @operation("Pause a trigger", Trigger, request=NoFields)
    def post(self, request: Request, pk: int) -> Response:
        """Pause a trigger: until it is resumed, it fires only if somebody runs it. Repeating it changes nothing.

        With a key, it takes the scope `chat`; for one of a workflow, `workflows` will do.
        """
        read(request, NoFields)
        managing.pause(_to_stop(request, pk))
        return _response(_mine(request).get(pk=pk))


class Resume(ApiView):
    """Resuming a trigger."""

    scopes = TURNS

    @operation("Resume a trigger", Trigger, request=NoFields)
    def post(self, request: Request, pk: int) -> Response:
        """Let a trigger fire again that was paused, or that the site switched off. What it missed is left out.

        With a key, it takes the scope `chat`; for one of a workflow, `workflows`.
        """
        read(request, NoFields)
        managing.resume(_to_start(request, pk))
        return _response(_mine(request).get(pk=pk))


class Run(StartingView):
    """Running a trigger now."""

    scopes = TURNS

    @operation("Run a trigger", {201: Firing}, request=NoFields)
    def post(self, request: Request, pk: int) -> Response:
        """Fire a trigger now, in whatever state it is. When it is due next stays as it was.

        The response is what became of it, also if no turn could start: see its `state` and `reason`. A second request
        while the turn of the first one runs starts none, unless it is to wait (`overlap`).

        With a key, it takes the scope `chat`; for one of a workflow, `workflows`.
        """
        read(request, NoFields)
        fired = fire_if_due(_to_start(request, pk).pk, by_hand=True)
        if fired is None:  # it was deleted meanwhile
            raise TriggerRow.DoesNotExist
        return Response(Firing.of(fired), status=201)


class Secrets(ApiView):
    """The secrets of a trigger that webhooks fire."""

    scopes = TURNS

    @operation("Add a secret for webhooks", {201: Secret}, request=NoFields)
    def post(self, request: Request, pk: int) -> Response:
        """Make one more secret, with which senders can prove themselves from now on. Only this response has its `text`.

        409 `too_many_secrets` if the trigger has five, and `no_webhook` if it fires at times. With a key, it takes the
        scope `chat`; for one of a workflow, `workflows`.
        """
        read(request, NoFields)
        trigger = _to_start(request, pk)
        if not trigger.hook:
            raise RequestRefused(409, "no_webhook", "This trigger fires at times. Only webhooks have secrets.")
        try:
            row, text = secrets.add(trigger)
        except TooManySecrets as error:
            raise RequestRefused(409, "too_many_secrets", str(error)) from error
        return Response(Secret.of(row, text), status=201)


class OneSecret(ApiView):
    """One secret of a trigger that webhooks fire."""

    scopes = TURNS

    @operation("Remove a secret for webhooks", {204: None}, request=NoFields)
    def delete(self, request: Request, pk: int, secret: int) -> Response:
        """Remove a secret: webhooks that are signed with it are refused from now on.

        409 `last_secret` for the last one. With a key, it takes the scope `chat`; for one of a workflow, `workflows`
        will do.
        """
        read(request, NoFields)
        try:
            secrets.remove(_to_stop(request, pk), secret)
        except LastSecret as error:
            raise RequestRefused(409, "last_secret", str(error)) from error
        return Response(status=204)


class StartAgain(StartingView):
    """Starting a firing again that failed to start."""

    scopes = TURNS

    @operation("Start a failed webhook again", {201: Firing}, request=NoFields)
    def post(self, request: Request, pk: int, firing: int) -> Response:
        """Let a webhook whose turn could not start wait once more, with what came with it.

        The response is what became of it. 409 `not_failed` if it did not fail, or nothing is kept of it. With a key, it
        takes the scope `chat`; for one of a workflow, `workflows`.
        """
        read(request, NoFields)
        failed = _to_start(request, pk).firings.get(pk=firing)
        started = start_again(failed.pk)
        if started is None:
            raise RequestRefused(409, "not_failed", "Only a webhook that failed to start can be started again.")
        return Response(Firing.of(started), status=201)


class Firings(ApiView):
    """The history of one trigger."""

    @operation("List a trigger's firings", FiringPage, parameters=LIST)
    def get(self, request: Request, pk: int) -> Response:
        """List what became of each time that a trigger was due, got a webhook or was run by hand, the newest first."""
        return paginate(request, FiringRow.objects.told().filter(trigger=_mine(request).get(pk=pk)), Firing.of)


def _mine(request: Request) -> TriggerQuerySet:
    return TriggerRow.objects.visible_to(request.user).prefetch_related("hook_secrets")


def _to_start(request: Request, pk: int) -> TriggerRow:
    """Return a trigger that is to start turns. Raises PermissionDenied for a key that may not start them."""
    found = _mine(request).get(pk=pk)
    require_scope(request, scope_of(found.policy))
    return found


def _to_stop(request: Request, pk: int) -> TriggerRow:
    """Return a trigger that is to start no more turns. Raises PermissionDenied for a key that may not stop them."""
    found = _mine(request).get(pk=pk)
    require_scope(request, Scope.CHAT, scope_of(found.policy))
    return found


def _response(trigger: TriggerRow, status: int = 200) -> Response:
    return Response(Trigger.of(trigger, slots.now()), status=status)


def _chat(request: Request, pk: int) -> Conversation:
    """Return a chat of the caller's. Raises Invalid for the conversation of a run."""
    found = Conversation.objects.visible_to(request.user).get(pk=pk)
    if found.kind != ConversationKind.CHAT:
        raise Invalid({"conversation": ["This is the conversation of a run. Choose a chat."]})
    return found


def _schedule(body: TriggerFields, zone: str, before: Schedule) -> Schedule:
    """Return the schedule that is asked for, in this zone unless the body names one; `before` if it asks for none.

    Raises RequestRefused for a zone that there is not.
    """
    named = body.zone or zone
    try:
        found = body.schedule(slots.now(), named)
    except BadSchedule as error:
        raise _refused({error.field: [str(error)]}) from error
    return found or replace(before, zone=named)


def _changed(trigger: TriggerRow, body: ChangedTrigger) -> managing.NewTrigger:
    """Return what the trigger is to be. Raises Invalid, RequestRefused."""
    policy = body.named_policy() or trigger.policy
    if policy == AGENT and body.input is not None:
        raise Invalid({"input": ["It starts the agent, which has none. Name a workflow or a policy with it."]})
    if trigger.hook and body.input is not None:
        raise Invalid({"input": ["Webhooks fire it: say with a mapping what they give the workflow."]})
    if trigger.hook and body.timed():
        raise Invalid({"": ["Webhooks fire it, so it has no time. Make a new trigger for that."]})
    if body.mapping is not None and not trigger.hook:
        raise Invalid({"mapping": ["It fires at times. Only what webhooks bring can be mapped."]})
    mapping = _mapping(body)
    if mapping is None:
        mapping = trigger.mapping if policy == trigger.policy else {}
    given = body.input if body.input is not None else trigger.input if policy == trigger.policy else {}
    return managing.NewTrigger(
        _schedule(body, trigger.zone, trigger.schedule),
        trigger.text if body.text is None else body.text,
        policy,
        given,
        trigger.name if body.name is None else body.name,
        body.tier or trigger.tier,
        Overlap(body.overlap or trigger.overlap),
        trigger.proof,
        mapping,
    )


def _mapping(body: TriggerFields) -> dict[str, Any] | None:
    """Return the mapping that a body has, as it is stored; None if it has none."""
    if body.mapping is None:
        return None
    return {name: each.model_dump(exclude_unset=True) for name, each in body.mapping.items()}


def _stored(store: Callable[[], T]) -> T:
    """Return what is stored. Raises RequestRefused, with the fields as they are called here."""
    try:
        return store()
    except InvalidInput as error:
        raise _refused(error.fields) from error
    except TooMany as error:
        raise RequestRefused(409, "too_many_triggers", str(error)) from error
    except TriggerKeyReused as error:
        raise RequestRefused(409, "idempotency_conflict", str(error), trigger=error.trigger) from error


def _refused(fields: dict[str, list[str]]) -> RequestRefused:
    named = {FIELDS.get(place, place): why for place, why in fields.items()}
    message = "; ".join(f"{place}: {' '.join(why)}" for place, why in named.items())
    return RequestRefused(400, "invalid_input", message, fields=named)
