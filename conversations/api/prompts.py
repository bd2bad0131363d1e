"""Prompts: started, read, stopped and gone on with."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from conversations.api import shapes
from conversations.api.bodies import (
    GoOn,
    MultipartBody,
    NewPrompt,
    NewPromptWithFiles,
    NoFields,
    Stop,
    StrictJSON,
    files_of,
    read,
    request_key,
)
from conversations.api.describe import IDEMPOTENCY, LIST, MOMENT, STEPS, described
from conversations.api.errors import RequestRefused
from conversations.api.paging import number, page_of, steps_page
from conversations.api.views import ApiView, StartingView
from conversations.display.json import prompt_head, prompt_json, rounds_granted, step_json
from conversations.display.moments import TurnMoment, moment_json
from conversations.models import Conversation, Origin, Prompt
from conversations.prompts.start import (
    BadInput,
    cancel_prompt,
    continue_prompt,
    repeat_prompt,
    start_prompt,
    start_without_message,
)


class Prompts(StartingView):
    """The prompts of one conversation."""

    parser_classes = [StrictJSON, MultipartBody]

    @described("List a conversation's prompts", shapes.PromptHeadPage, parameters=LIST)
    def get(self, request: Request, pk: int) -> Response:
        """Its prompts in the order in which they were started, without what came of them."""
        conversation = Conversation.objects.visible_to(request.user).get(pk=pk)
        prompts = conversation.prompts.order_by("number").prefetch_related("files")
        return page_of(request, prompts, prompt_head, "input")

    @described(
        "Send a message",
        {201: shapes.Prompt},
        request={StrictJSON.media_type: NewPrompt, MultipartBody.media_type: NewPromptWithFiles},
        parameters=IDEMPOTENCY,
    )
    def post(self, request: Request, pk: int) -> Response:
        """Start a turn. 409 `turn_in_progress` while another one runs or waits; `prompt` is its id.

        429 `over_quota` where your turns at a time or your tokens of the day are used up, 503 `stopped` while an
        administrator has stopped all work; nothing was taken then.

        With an Idempotency-Key the same request again, also at the same moment, gives the same prompt with the same
        status; the key with another request is 409 `idempotency_conflict`. Files are a part of the request.
        """
        conversation = Conversation.objects.visible_to(request.user).get(pk=pk)
        body, files, key, by = read(request, NewPrompt), files_of(request), request_key(request), request.user
        if not by.is_staff and not body.visible:
            raise RequestRefused(403, "forbidden", "Only staff may start a turn that is not shown.")
        if body.input is None and not files:
            if not by.is_staff:
                raise BadInput("Write something first: only staff may have the system start a turn.")
            return _started(start_without_message(conversation, by, tier=body.model, visible=body.visible, key=key))
        more: dict[str, Any] = {"tier": body.model, "visible": body.visible, "key": key, "files": files}
        return _started(start_prompt(conversation, by, body.input, origin=Origin.API, **more))


class OnePrompt(ApiView):
    """One prompt."""

    @described("Get a prompt", shapes.Prompt)
    def get(self, request: Request, pk: int) -> Response:
        """A prompt with what came of it so far, in reading order."""
        return _shown(_mine(request).get(pk=pk))


class PromptSteps(ApiView):
    """The ledger of a prompt."""

    @described("List a prompt's steps", shapes.StepPage, parameters=STEPS)
    def get(self, request: Request, pk: int) -> Response:
        """Everything that happened in a turn, step by step, as it is recorded."""
        return steps_page(request, _mine(request).get(pk=pk).steps.all(), step_json)


class PromptOutputs(ApiView):
    """What came of a prompt, at any moment of it."""

    @described("Get a prompt's outputs at a moment", shapes.Moment, parameters=MOMENT)
    def get(self, request: Request, pk: int) -> Response:
        """What had come of a turn after its last step up to `at`, in reading order, and how it stood then."""
        at = number(request, "at", 0) if "at" in request.query_params else None
        return Response(moment_json(TurnMoment.of(_mine(request).select_related("conversation").get(pk=pk), at)))


class Cancel(ApiView):
    """The end of a turn by hand."""

    @described("Stop a turn", shapes.Prompt, request=Stop)
    def post(self, request: Request, pk: int) -> Response:
        """Stop a turn. What runs is ended within seconds; a turn that has ended stays as it is."""
        prompt = _mine(request).get(pk=pk)
        return _shown(cancel_prompt(prompt.pk, request.user, read(request, Stop).reason))


class Continue(StartingView):
    """A turn after the turn."""

    @described("Continue a turn", {201: shapes.Prompt}, request=GoOn, parameters=IDEMPOTENCY)
    def post(self, request: Request, pk: int) -> Response:
        """Go on with a turn that failed or was stopped: a new prompt without input, with a budget of its own."""
        prompt = _mine(request).get(pk=pk)
        body, key = read(request, GoOn), request_key(request)
        return _started(continue_prompt(prompt.pk, request.user, body.model, origin=Origin.API, key=key))


class Again(StartingView):
    """The turn once more."""

    @described("Ask a turn again", {201: shapes.Prompt}, request=NoFields, parameters=IDEMPOTENCY)
    def post(self, request: Request, pk: int) -> Response:
        """Ask a turn that has ended again: a new prompt with the same message, files and tier, which `repeats` it.

        A turn that completed is asked again while it is the conversation's last.
        """
        prompt = _mine(request).get(pk=pk)
        read(request, NoFields)
        return _started(repeat_prompt(prompt.pk, request.user, origin=Origin.API, key=request_key(request)))


def _mine(request: Request) -> QuerySet[Prompt]:
    return Prompt.objects.visible_to(request.user)


def _shown(prompt: Prompt, status: int = 200) -> Response:
    return Response(prompt_json(prompt, rounds_granted(prompt)), status=status)


def _started(prompt: Prompt) -> Response:
    """A new prompt, or the one that the same request started before: it may have gone on since."""
    response = _shown(prompt, 201)
    response["Location"] = reverse("api-prompt", args=[prompt.pk])
    return response
