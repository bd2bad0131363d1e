"""Batches over the API: starting one, how it stands, and stopping it."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404
from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from agents.engine.ledger import JSON
from conversations.api.bodies import idempotency_key, read
from conversations.api.describe import IDEMPOTENCY, LIST, operation
from conversations.api.errors import Invalid, RequestRefused
from conversations.api.paging import paginate_together
from conversations.api.shapes import Error
from conversations.api.views import ApiView, StartingView
from conversations.models import Origin, Scope
from workflows.api import batch_shapes
from workflows.api.views import forbidden, workflow_named
from workflows.batches.starting import BatchKeyReused, BatchRuns, delete_batch, start_batch, stop_batch, why_no_batch
from workflows.batches.table import Table, read_inputs, read_table
from workflows.definition import Workflow
from workflows.models import Batch

ONE_OF_BOTH = "Send either `lines` or `csv`."


class Batches(ApiView):
    """The list of batches."""

    @operation("List your batches", batch_shapes.BatchPage, parameters=LIST)
    def get(self, request: Request) -> Response:
        """List your batches, the newest first, without their lines."""
        return paginate_together(request, _own(request), batch_shapes.BatchHead.of_all)


class OneBatch(ApiView):
    """One batch."""

    scopes = (Scope.WORKFLOWS,)

    @operation("Get a batch", batch_shapes.Batch)
    def get(self, request: Request, pk: int) -> Response:
        """Return a batch of yours with its lines, as they stand now."""
        return Response(batch_shapes.Batch.now(_one(request, pk)))

    @operation("Delete a batch", {204: None, 409: Error})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete a batch that has ended, with the inputs of its lines that never started. Its runs stay.

        409 `batch_in_progress` while a line of it runs, waits, or is to come: stop it first. With a key, it takes the
        scope `workflows`.
        """
        try:
            delete_batch(_one(request, pk))
        except BatchRuns as error:
            raise RequestRefused(409, "batch_in_progress", str(error), batch=pk) from error
        return Response(status=204)


class StopBatch(ApiView):
    """Stopping a batch."""

    scopes = (Scope.CHAT, Scope.WORKFLOWS)

    @operation("Stop a batch", batch_shapes.Batch, request=batch_shapes.StopBatch)
    def post(self, request: Request, pk: int) -> Response:
        """Start no more of its lines. With `running`, its runs that have not ended are stopped too.

        Stopping it again changes nothing else. With a key, it takes the scope `workflows` or `chat`.
        """
        found, body = _one(request, pk), read(request, batch_shapes.StopBatch)
        stop_batch(found, running=body.running)
        return Response(batch_shapes.Batch.now(_one(request, pk)))


class StartBatch(StartingView):
    """Starting a batch."""

    scopes = (Scope.WORKFLOWS,)

    @operation(
        "Run a workflow for each line",
        {202: batch_shapes.Batch},
        request=batch_shapes.NewBatch,
        parameters=IDEMPOTENCY,
    )
    def post(self, request: Request, name: str) -> Response:
        """Start a run for each of these inputs: at most 5 side by side, and the rest by themselves after that.

        All are checked first. If one is wrong, nothing starts: 400 `invalid_input`, with each wrong place in `errors`,
        by line and field, such as `3/days`; "" for all of the table. 400 `no_batch` if this workflow takes none,
        because it has no input, asks for a secret or an uploaded file, works in a chat, or may only start while
        somebody is there.

        Its runs count as one towards your turns at once. While the kill switch is on, or you are over a quota, it is
        accepted all the same, and its lines wait: `holds` says why. 403 and 404 are as for a run. The same
        Idempotency-Key with the same request returns the same batch.

        With a key, it takes the scope `workflows`.
        """
        workflow = workflow_named(name)
        if workflow.why_not(request.user):
            raise forbidden(workflow, request)
        key, body = idempotency_key(request), read(request, batch_shapes.NewBatch)
        if why := why_no_batch(workflow):
            raise RequestRefused(400, "no_batch", why)
        table = _table(workflow, body, request)
        try:
            batch = start_batch(workflow, request.user, table.inputs, key, origin=Origin.API)
        except BatchKeyReused as error:
            raise RequestRefused(409, "idempotency_conflict", str(error), batch=error.batch.pk) from error
        response = Response(batch_shapes.Batch.now(batch), status=202)
        response["Location"] = reverse("api-batch", args=[batch.pk])
        return response


def _table(workflow: Workflow, body: batch_shapes.NewBatch, request: Request) -> Table:
    """Return the table that was sent. Raises Invalid, and RequestRefused if something in it is wrong."""
    if body.lines is not None and body.csv is None:
        table = read_inputs(workflow, body.lines, request.user)
    elif body.csv is not None and body.lines is None:
        table = read_table(workflow, body.csv, request.user)
    else:
        raise Invalid({"lines": [ONE_OF_BOTH]})
    if table.good:
        return table
    raise RequestRefused(400, "invalid_input", _first_of(table), errors=_errors(table))


def _errors(table: Table) -> dict[str, JSON]:
    """Return what is wrong by place, such as `3/days`."""
    found: dict[str, JSON] = {"": [*table.problems]} if table.problems else {}
    for line in table.wrong:
        for place, why in line.errors.items():
            found[f"{line.number}/{place.replace('.', '/')}".removesuffix("/")] = [*why]
    return found


def _first_of(table: Table) -> str:
    """Return what is wrong in one sentence, and how many lines are."""
    if table.problems:
        return " ".join(table.problems)
    line = table.wrong[0]
    place, why = next(iter(line.errors.items()))
    return f"Line {line.number}{f', {place}' if place else ''}: {' '.join(why)} Wrong lines: {len(table.wrong)}."


def _own(request: Request) -> QuerySet[Batch]:
    return Batch.objects.filter(user=request.user)


def _one(request: Request, pk: int) -> Batch:
    """Return a batch of this person's. Raises Http404."""
    if found := _own(request).filter(pk=pk).first():
        return found
    raise Http404
