"""Prompts (turns): starting, reading, stopping and continuing them."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import QueryDict
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from agents.engine.root import AGENT
from conversations.api import shapes
from conversations.api.bodies import (
    GoOn,
    MultipartBody,
    NewMessage,
    NewPrompt,
    NewPromptWithFiles,
    NoFields,
    Stop,
    StrictJSON,
    idempotency_key,
    read,
    uploaded_files,
)
from conversations.api.describe import IDEMPOTENCY, LIST, MOMENT, STEPS, operation
from conversations.api.errors import RequestRefused
from conversations.api.paging import number, paginate, paginate_steps
from conversations.api.views import ApiView, StartingView, require_scope
from conversations.display.moments import TurnMoment
from conversations.display.shapes import record
from conversations.models import Conversation, Origin, Prompt, Scope, Step
from conversations.prompts.start import (
    BadInput,
    cancel_prompt,
    continue_prompt,
    repeat_prompt,
    start_prompt,
)
from conversations.prompts.startable import find_for

TURNS = (Scope.CHAT, Scope.WORKFLOWS)
"""What a key may need to start or stop a turn; what it was started with says which."""


class Prompts(StartingView):
    """The prompts of one conversation."""

    parser_classes = [StrictJSON, MultipartBody]
    scopes = TURNS

    @operation("List a conversation's prompts", shapes.PromptHeadPage, parameters=LIST)
    def get(self, request: Request, pk: int) -> Response:
        """List the conversation's prompts in the order they were started, without their outputs."""
        conversation = Conversation.objects.visible_to(request.user).get(pk=pk)
        prompts = conversation.prompts.order_by("number").prefetch_related("files")
        return paginate(request, prompts, record.PromptHead.of, "input")

    @operation(
        "Send a message",
        {201: shapes.StartedPrompt},
        request={StrictJSON.media_type: NewPrompt, MultipartBody.media_type: NewPromptWithFiles},
        parameters=IDEMPOTENCY,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Start a turn. 409 `turn_in_progress` while another one runs or waits; `prompt` is its id.

        With `policy` and `payload`, that policy runs in place of the agent. 403 `forbidden` if you may not start it,
        404 `unknown_policy` if there is none of this name, and 400 `invalid_input` if it does not accept the payload,
        with each wrong field in `fields`, such as `payload.days`.

        429 `over_quota` if you have too many turns at a time or have used up your tokens for the day. 503 `stopped`
        while an administrator has stopped all work. In both cases, nothing was started.

        Staff may leave out the input: the system then starts the turn, in a queue, as if nobody had spoken. They may do
        so in anybody's conversation, whose owner is charged; of somebody else's, the response tells the prompt's id,
        conversation and state, and nothing else of it can be read. Such a turn does not count towards the owner's turns
        at a time, but 5 of a conversation can be queued: one more is 429 `over_quota`. 403 `forbidden` if the owner's
        account was deactivated.

        With an Idempotency-Key, the same request sent again, even at the same moment, returns the same prompt with the
        same status. The same key with a different request is 409 `idempotency_conflict`. Files are part of the request.

        With an API key, it takes the scope `chat`; for a `policy` that is a workflow, `workflows`.
        """
        by = request.user
        reached = Conversation.objects.listed() if by.is_staff else Conversation.objects.visible_to(by)
        conversation = reached.get(pk=pk)
        body, files, key = _new_prompt(request), uploaded_files(request), idempotency_key(request)
        require_scope(request, scope_of(body.policy or AGENT))
        own, by_system = conversation.owner_id == by.pk, body.input is None and body.policy is None and not files
        if not (own or by_system):
            raise Conversation.DoesNotExist
        if not by.is_staff and not body.visible:
            raise RequestRefused(403, "forbidden", "Only staff may start a hidden turn.")
        more: dict[str, Any] = {"tier": body.model, "visible": body.visible, "key": key, "origin": Origin.API}
        if body.policy is not None:
            find_for(by, body.policy)
            started = start_prompt(conversation, by, policy=body.policy, payload=body.payload, **more)
            return _created_response(started)
        if by_system and not by.is_staff:
            raise BadInput("The message is empty: only staff may have the system start a turn.")
        started = start_prompt(conversation, by, body.input, files=files, **more)
        return _created_response(started) if own else Response(record.QueuedPrompt.of(started), status=201)


class OnePrompt(ApiView):
    """One prompt."""

    @operation("Get a prompt", record.Prompt)
    def get(self, request: Request, pk: int) -> Response:
        """Return a prompt with its outputs so far, in reading order."""
        return _prompt_response(_mine(request).get(pk=pk))


class PromptSteps(ApiView):
    """The ledger of a prompt."""

    @operation("List a prompt's steps", shapes.StepPage, parameters=STEPS)
    def get(self, request: Request, pk: int) -> Response:
        """List everything that happened in a turn, step by step, as recorded."""
        return paginate_steps(request, Step.objects.of(_mine(request).get(pk=pk)), record.Step.of)


class PromptOutputs(ApiView):
    """The outputs of a prompt at a moment."""

    @operation("Get a prompt's outputs at a moment", record.Moment, parameters=MOMENT)
    def get(self, request: Request, pk: int) -> Response:
        """Return the outputs of a turn after its last step up to `at`, in reading order, and its state at that time."""
        at = number(request, "at", 0) if "at" in request.query_params else None
        return Response(record.Moment.of(TurnMoment.of(_mine(request).select_related("conversation").get(pk=pk), at)))


class Cancel(ApiView):
    """Stopping a turn."""

    scopes = TURNS

    @operation("Stop a turn", record.Prompt, request=Stop)
    def post(self, request: Request, pk: int) -> Response:
        """Stop a turn. Whatever runs is ended within seconds. A turn that has already ended does not change.

        With a key, it takes the scope `chat`; for a run of a workflow, `workflows` will do.
        """
        prompt = _mine(request).get(pk=pk)
        require_scope(request, Scope.CHAT, scope_of(prompt.policy))
        return _prompt_response(cancel_prompt(prompt.pk, request.user, read(request, Stop).reason))


class Continue(StartingView):
    """Continuing a turn."""

    scopes = TURNS

    @operation("Continue a turn", {201: record.Prompt}, request=GoOn, parameters=IDEMPOTENCY)
    def post(self, request: Request, pk: int) -> Response:
        """Continue a turn that failed or was stopped: a new prompt without input, with a budget of its own."""
        body, key = read(request, GoOn), idempotency_key(request)
        require_scope(request, scope_of(_mine(request).get(pk=pk).policy))
        return _created_response(continue_prompt(pk, request.user, body.model, origin=Origin.API, key=key))


class Again(StartingView):
    """Repeating a turn."""

    scopes = TURNS

    @operation("Ask a turn again", {201: record.Prompt}, request=NoFields, parameters=IDEMPOTENCY)
    def post(self, request: Request, pk: int) -> Response:
        """Repeat a turn that has ended: a new prompt with the same message, files and tier. `repeats` is the old id.

        A completed turn can be repeated only while it is the last one of its conversation.

        With a key, it takes the scope `chat`; for a run of a workflow, `workflows`.
        """
        read(request, NoFields)
        require_scope(request, scope_of(_mine(request).get(pk=pk).policy))
        return _created_response(repeat_prompt(pk, request.user, origin=Origin.API, key=idempotency_key(request)))


def _new_prompt(request: Request) -> NewPrompt:
    """Return the body of a new turn. A form holds a message and files, and no policy."""
    if isinstance(request.data, QueryDict):
        return NewPrompt(**dict(read(request, NewMessage)))
    return read(request, NewPrompt)


def scope_of(policy: str) -> Scope:
    """Return the scope that a key needs to start this policy."""
    # What registers in `startable`, such as a workflow, is called `<kind>:<name>`; no other name has a colon.
    return Scope.WORKFLOWS if ":" in policy else Scope.CHAT


def _mine(request: Request) -> QuerySet[Prompt]:
    return Prompt.objects.visible_to(request.user)


def _prompt_response(prompt: Prompt, status: int = 200) -> Response:
    return Response(record.Prompt.of(prompt), status=status)


def _created_response(prompt: Prompt) -> Response:
    """Return a new prompt, or the one started by the same request before, which may have changed since."""
    response = _prompt_response(prompt, 201)
    response["Location"] = reverse("api-prompt", args=[prompt.pk])
    return response
