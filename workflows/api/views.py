"""Workflows over the API: what there is, the caller's runs, and starting one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.db.models import Min
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response

from conversations.api.bodies import idempotency_key, read
from conversations.api.describe import IDEMPOTENCY, LIST, WAIT, WAIT_MOST, operation
from conversations.api.errors import Invalid, RequestRefused
from conversations.api.events import FULL, FULL_SECONDS, entry_of
from conversations.api.paging import paginate_list, paginate_together
from conversations.api.views import ApiView, StartingView
from conversations.database.threads import read as in_reading_thread
from conversations.display.shapes import record
from conversations.models import Conversation, Origin, Prompt, Scope, Step
from conversations.prompts.startable import InvalidInput
from conversations.push.access import ListeningRefused, Pass
from conversations.push.share import TooMany, shares
from workflows import discovery
from workflows.api import shapes
from workflows.api.filters import OF_ALL, OF_ONE, read_filter
from workflows.api.waiting import AwaitedRun
from workflows.definition import Workflow
from workflows.history import RunFilter, runs_of
from workflows.running import seen, seen_by, start_run


class Workflows(ApiView):
    """The list of workflows."""

    @operation("List workflows", shapes.WorkflowPage, parameters=LIST)
    def get(self, request: Request) -> Response:
        """List the workflows that you may run, by category and title, and those that are listed to everybody."""
        return paginate_list(request, seen_by(request.user), shapes.Workflow.of)


class Categories(ApiView):
    """The categories of workflows."""

    @operation("List the categories of workflows", shapes.Categories)
    def get(self, request: Request) -> Response:
        """List the categories of the workflows that you see, with how many there are in each."""
        return Response(shapes.Categories.of(seen_by(request.user)).root)


@extend_schema(exclude=True)
class PlainCategories(Categories):
    """The same list at the address without `/api/`, which the pages' own links begin with."""


class OneWorkflow(ApiView):
    """One workflow."""

    @operation("Get a workflow", shapes.Workflow)
    def get(self, request: Request, name: str) -> Response:
        """Return a workflow. 404 `unknown_workflow` if there is none of this name, 403 if it is not listed to you."""
        workflow = workflow_named(name)
        if found := seen(request.user, name):
            return Response(shapes.Workflow.of(found))
        raise forbidden(workflow, request)


class Runs(ApiView):
    """The runs of a workflow."""

    @operation("List your runs of a workflow", shapes.RunPage, parameters=OF_ONE)
    def get(self, request: Request, name: str) -> Response:
        """List your runs of this workflow, the newest first, without their outputs."""
        return _runs(request, read_filter(request, workflow_named(name).name))


class AllRuns(ApiView):
    """The runs of all workflows."""

    @operation("List your runs", shapes.RunPage, parameters=OF_ALL)
    def get(self, request: Request) -> Response:
        """List your runs of all workflows, however they were started, the newest first, without their outputs."""
        return _runs(request, read_filter(request))


class StartRun(StartingView):
    """Starting a run, and perhaps waiting for its end.

    The view is asynchronous so that a client that waits only keeps the thread of its request, which some middleware
    holds anyway until it has the answer: it has no database connection meanwhile, and asks nothing. Those who start
    runs are limited, so such threads are few. All else runs in that thread, as in any view of the REST framework.
    """

    scopes = (Scope.WORKFLOWS,)
    view_is_async = True
    awaited: AwaitedRun | None = None

    async def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer a request; one that waits, when the run has ended or the time is over."""
        response: HttpResponseBase = await sync_to_async(super().dispatch)(request, *args, **kwargs)
        if self.awaited is None:
            return response
        await sync_to_async(close_old_connections)()
        ended = await self.awaited.ends()
        return await in_reading_thread(self._answer_again, self.awaited.prompt) if ended else response

    @operation(
        "Run a workflow",
        {202: record.Prompt, 200: record.Prompt},
        request=shapes.NewRun,
        parameters=(*WAIT, *IDEMPOTENCY),
    )
    def post(self, request: Request, name: str) -> Response:
        """Start a run. 202 with its prompt; with `wait`, 200 if it ended within so many seconds.

        403 `forbidden` if you may not run it, 404 `unknown_workflow` if there is none of this name, and 400
        `invalid_input` if it does not accept the parameters, with each wrong place in `errors`, such as `stops/0/city`.
        Then, and whenever else the answer is an error, nothing was started.

        The run has a conversation of its own, whose workspace is new. In a `conversation` of yours it takes the slot
        like a message: 409 `turn_in_progress` while a turn runs or waits there; `prompt` is its id.

        With a key, it takes the scope `workflows`, with which `/api/prompts/<id>/` also stops and repeats the run.

        429 `over_quota` and 503 `stopped` are as for messages, and so is the Idempotency-Key: the same request sent
        again returns the same prompt. It may wait longer than the first one.
        """
        workflow, seconds = workflow_named(name), _seconds(request)
        if workflow.why_not(request.user):
            raise forbidden(workflow, request)
        key, body = idempotency_key(request), read(request, shapes.NewRun)
        entry = _entry(request) if seconds else None
        mine = Conversation.objects.visible_to(request.user)
        where = None if body.conversation is None else mine.get(pk=body.conversation)
        try:
            run = start_run(workflow, request.user, body.parameters, conversation=where, key=key, origin=Origin.API)
        except InvalidInput as error:
            places = {place.replace(".", "/"): why for place, why in error.fields.items()}
            raise RequestRefused(400, "invalid_input", str(InvalidInput(places)), errors=places) from error
        if entry and not run.ended:
            first = Step.objects.of(run).aggregate(first=Min("seq"))["first"]
            entry = replace(entry, conversation=run.conversation_id)
            self.awaited = AwaitedRun(entry, run.conversation_id, run.pk, first - 1, seconds)
        return _answer(run, 200 if seconds and run.ended else 202)

    def _answer_again(self, pk: int) -> HttpResponseBase:
        """Return the answer for a run that has ended meanwhile."""
        answer = _answer(Prompt.objects.get(pk=pk), 200)
        response: HttpResponseBase = self.finalize_response(self.request, answer)
        return response


def _runs(request: Request, chosen: RunFilter) -> Response:
    runs = runs_of(request.user, chosen).prefetch_related("files")
    return paginate_together(request, runs, partial(shapes.Run.of_all, request.user), "input")


def _answer(run: Prompt, status: int) -> Response:
    response = Response(record.Prompt.of(run), status=status)
    response["Location"] = reverse("api-prompt", args=[run.pk])
    return response


def workflow_named(name: str) -> Workflow:
    """Return the workflow of this name. Raises RequestRefused, also for the name of a tool."""
    if found := discovery.installed().get(name):
        return found
    raise RequestRefused(404, "unknown_workflow", f"There is no workflow {name[:200]!r}.")


def forbidden(workflow: Workflow, request: Request) -> RequestRefused:
    """Return the refusal of somebody who may not run it, with the reason."""
    return RequestRefused(403, "forbidden", workflow.why_not(request.user) or f"You may not run {workflow.name!r}.")


def _seconds(request: Request) -> int:
    """Return how long the client waits; 0 if it does not. Raises Invalid."""
    given = request.query_params.get("wait")
    if given is None:
        return 0
    if given.isascii() and given.isdigit() and len(given) <= 2 and 1 <= int(given) <= WAIT_MOST:
        return int(given)
    raise Invalid({"wait": [f"Write a whole number of seconds, 1 to {WAIT_MOST}."]})


def _entry(request: Request) -> Pass:
    """Return the pass by which this client waits. Raises Throttled if too many of their streams are open."""
    try:
        shares.raise_if_full(request.user.pk)
        return entry_of(request)
    except TooMany:
        raise exceptions.Throttled(FULL_SECONDS, FULL) from None
    except ListeningRefused:  # the session has ended since the request came
        raise exceptions.NotAuthenticated from None
