"""The pages of batches: the form with a table, its check, how a batch stands, and its results."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_http_methods

from conversations.accounts.http import PersonRequest
from conversations.database.busy import DatabaseBusy, reporting_busy
from conversations.database.disk import DiskFull, reporting_full
from conversations.database.ids import row_id
from conversations.pages.decorators import form_view, page_view
from conversations.pages.sidebar import sidebar
from conversations.prompts.idempotency import key_of_form
from conversations.prompts.start import Deactivated
from conversations.prompts.startable import NotAllowed
from workflows import discovery
from workflows.batches.standing import counts_of, for_others, results_csv, standing_of
from workflows.batches.starting import SIDE_BY_SIDE, BatchKeyReused, BatchRuns, delete_batch, start_batch, stop_batch
from workflows.definition import Workflow
from workflows.models import Batch
from workflows.pages.batch_form import CHANGED, BatchForm, posted_form
from workflows.pages.batch_rows import BatchSummary, batch_page
from workflows.permissions import SeenWorkflow
from workflows.running import seen

BATCHES_MOST = 25
"""Batches on a page."""
STARTED_BEFORE = "This form has already started other lines. Nothing new has started."
STATUS: dict[type[Exception], int] = {NotAllowed: 403, Deactivated: 403, DatabaseBusy: 503, DiskFull: 507}
"""Reasons why nothing starts, and the status of the answer. The table stays in the form."""


@login_required
@require_http_methods(["GET", "POST"])
def batch_form(request: PersonRequest, name: str) -> HttpResponse:
    """Show the form for a table; on POST, check it, and start it once it was shown as it is and every line is right.

    400 with what is wrong, 403 or 409 where nothing can start. The table stays.
    """
    found = _seen(request, name)
    if request.method != "POST":
        return _form(request, found, BatchForm(found.workflow, request.user))
    key = key_of_form(request.POST.get("key", ""))
    form = posted_form(found.workflow, request.user, request.POST, request.FILES.get("file"), key)
    if found.why_not or form.why_none or form.problem:
        return _form(request, found, form, 400)
    if "leave_out" in request.POST and form.table.wrong:
        form.leave_out_wrong()
    elif not form.table.good:
        return _form(request, found, form, 400, checked=True)
    elif "start" in request.POST:
        return _start(request, found, form)
    return _form(request, found, form, checked=True)


@page_view
def batch_template(request: PersonRequest, name: str) -> HttpResponse:
    """Download an empty table with the workflow's columns."""
    found = _seen(request, name)
    return _csv(BatchForm(found.workflow, request.user).template, f"{name}.csv")


@page_view
def batches(request: PersonRequest) -> HttpResponse:
    """List the person's batches, the newest first."""
    page = Paginator(_own(request), BATCHES_MOST).get_page(row_id(request.GET.get("page", "1")) or 1)
    counts = counts_of(page.object_list)
    others = for_others(page.object_list, request.user)
    rows = [
        BatchSummary(each, discovery.installed().get(each.workflow), counts[each.pk], others[each.pk])
        for each in page.object_list
    ]
    return render(request, "workflows/batch/list.html", {"rows": rows, "page": page} | _frame(request))


@page_view
def batch(request: PersonRequest, pk: int) -> HttpResponse:
    """Show how a batch stands. The script of the page asks again with `?v=`: 204 while it would show the same."""
    shown = batch_page(standing_of(get_object_or_404(_own(request), pk=pk)))
    if request.htmx:
        if request.GET.get("v") == shown.standing.version:
            return HttpResponse(status=204)
        return render(request, "workflows/batch/standing.html", {"shown": shown})
    return render(request, "workflows/batch/page.html", {"shown": shown, "most": SIDE_BY_SIDE} | _frame(request))


@form_view
def batch_stop(request: PersonRequest, pk: int) -> HttpResponse:
    """Start no more lines of a batch; with `running`, stop also those that run or wait."""
    found = get_object_or_404(_own(request), pk=pk)
    with reporting_busy():
        stop_batch(found, running="running" in request.POST)
    return redirect(found)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def batch_delete(request: PersonRequest, pk: int) -> HttpResponse:
    """Ask for confirmation; on POST, delete a batch. 409 while a line of it runs, waits, or is to come."""
    found, problem = get_object_or_404(_own(request), pk=pk), ""
    if request.method == "POST":
        try:
            with reporting_busy():
                delete_batch(found)
        except BatchRuns as error:
            problem = str(error)
        except Batch.DoesNotExist:
            raise Http404 from None  # deleted at the same moment
        else:
            return redirect("batches")
    context = {"standing": standing_of(found), "problem": problem}
    status = 409 if problem else 200
    return render(request, "workflows/batch/delete.html", context | _frame(request), status=status)


@page_view
def batch_results(request: PersonRequest, pk: int) -> HttpResponse:
    """Download what came of a batch as CSV."""
    found = get_object_or_404(_own(request), pk=pk)
    return _csv(results_csv(standing_of(found)), f"{found.workflow}-batch-{found.pk}.csv")


def _start(request: PersonRequest, found: SeenWorkflow[Workflow], form: BatchForm) -> HttpResponse:
    if not form.confirmed:
        form.problem = CHANGED
        return _form(request, found, form, 409, checked=True)
    try:
        with reporting_busy(), reporting_full():
            return redirect(start_batch(found.workflow, request.user, form.table.inputs, form.key))
    except BatchKeyReused as error:
        form.problem, form.taken, form.key = STARTED_BEFORE, error.batch, BatchForm(found.workflow, request.user).key
        return _form(request, found, form, 409, checked=True)
    except tuple(STATUS) as error:
        form.problem = f"Nothing has started. {error}"
        return _form(request, found, form, STATUS[type(error)], checked=True)


def _form(
    request: PersonRequest, found: SeenWorkflow[Workflow], form: BatchForm, status: int = 200, checked: bool = False
) -> HttpResponse:
    """Show the form, with the check of its table if it was `checked`; 403 with the reason for who may not run it."""
    context = {"workflow": found.workflow, "why_not": found.why_not, "form": form, "checked": checked}
    status = 403 if found.why_not else status
    return render(request, "workflows/batch/form.html", context | _frame(request), status=status)


def _csv(text: str, name: str) -> HttpResponse:
    """Return a CSV file. It begins with a mark by which spreadsheets read it as UTF-8."""
    response = HttpResponse(f"\ufeff{text}", content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = content_disposition_header(True, name)
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _seen(request: PersonRequest, name: str) -> SeenWorkflow[Workflow]:
    """Return a workflow as the person sees it. Raises Http404."""
    if found := seen(request.user, name):
        return found
    raise Http404


def _own(request: PersonRequest) -> QuerySet[Batch]:
    return Batch.objects.filter(user=request.user)


def _frame(request: PersonRequest) -> dict[str, Any]:
    """Return the context of what stands around every page."""
    return {"sidebar": sidebar(request.user), "place": "workflows"}
