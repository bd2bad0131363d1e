"""The pages of workflows."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_http_methods

from agents.engine.ledger import JSON, valid_text
from conversations.accounts.http import PersonRequest
from conversations.database.ids import row_id
from conversations.models import Conversation, Prompt
from conversations.pages.decorators import form_view, page_view
from conversations.pages.sidebar import sidebar
from conversations.prompts.idempotency import is_used, key_of_form
from conversations.prompts.start import cancel_prompt
from workflows import discovery, stars
from workflows.batches.starting import why_no_batch
from workflows.definition import Workflow
from workflows.history import RunFilter, runs_of
from workflows.pages import filling
from workflows.pages.form import RunForm, own_chats, secret_fields
from workflows.pages.later import run_later
from workflows.pages.menu import menu_rows
from workflows.pages.runs import inputs_of, last_rows, runs_filter, runs_page
from workflows.pages.selector import selector
from workflows.pages.starting import start
from workflows.pages.uploads import earlier_files, receive
from workflows.permissions import SeenWorkflow
from workflows.running import seen, seen_by

Seen = SeenWorkflow[Workflow]

LAST_MOST = 5
"""Runs beside the form."""
FILTERS_MOST = 1_000
"""Characters of the filters to which a page returns."""
NO_CHAT = "Choose one of your chats."
NO_CHATS = "This works on the files of a chat, and you have none yet. Start one first."
NOT_LATER = "Nothing has started: this runs only while somebody is there. Start it now, or leave it."
GONE = "Nothing has started: the chat in which it would run no longer exists. Start it again to run it on its own."


@page_view
def select(request: PersonRequest) -> HttpResponse:
    """Show the workflows; with `?q=`, those in which these words occur. The search field gets only the list."""
    found = selector(request.user, request.GET.get("q", "").strip())
    if request.htmx:
        return render(request, "workflows/flows.html", {"selector": found})
    return render(request, "workflows/selector.html", {"selector": found} | _frame(request))


@page_view
def menu(request: PersonRequest) -> HttpResponse:
    """Return the composer's menu: what the person may run, for the conversation `?in=`."""
    found = _own_chat(request.user, request.GET.get("in", ""))
    rows = menu_rows([each.workflow for each in seen_by(request.user) if each.why_not is None], found)
    return render(request, "workflows/menu.html", {"rows": rows})


@login_required
@require_http_methods(["GET", "POST"])
def workflow(request: PersonRequest, name: str) -> HttpResponse:
    """Show the form, filled in by the address; on POST, start a run and go to its page.

    400 with the errors at the fields, 403, 409 or 429 where nothing can start now. What was typed stays.
    """
    found = _seen(request, name)
    if request.method != "POST":
        return _filled(request, found, RunForm(found.workflow, request.user))
    return _posted(request, found)


@page_view
def workflow_in(request: PersonRequest, name: str, pk: int) -> HttpResponse:
    """Show the form of a run in this chat."""
    found, chat = _seen(request, name), get_object_or_404(own_chats(request.user), pk=pk)
    return _filled(request, found, RunForm(found.workflow, request.user, chat=chat, origin=chat))


@page_view
def again(request: PersonRequest, name: str, pk: int) -> HttpResponse:
    """Show the form with the input of an earlier run, without its secrets."""
    found = _seen(request, name)
    runs = runs_of(request.user, RunFilter(workflow=name)).select_related("conversation")
    run = get_object_or_404(runs, pk=pk)
    given: dict[str, JSON] = inputs_of(found.workflow, [run]).get(run.pk, {})
    known = found.workflow.schema.get("properties", {})
    form = RunForm(found.workflow, request.user, again=run)
    form.input = {name: value for name, value in given.items() if isinstance(known, dict) and name in known}
    form.unknown = [name for name in given if name not in form.input]
    form.input, form.upload_errors = earlier_files(form.input, found.workflow, run)
    form.mark_unfit()
    form.chat = own_chats(request.user).filter(pk=run.conversation_id).first()
    form.origin = None if found.workflow.workspace else form.chat
    return _page(request, found, form)


@form_view
def fill_in(request: PersonRequest, name: str) -> HttpResponse:
    """Let a model read what the person wrote in their own words, and go to where the form will be filled in.

    400, 403, 429, 503 or 507 with the reason if no model can be asked now, or if a file that was chosen is refused.
    What was typed stays, and so do files.
    """
    found = _seen(request, name)
    form = _received(request, found)
    _choose_chat(form, request.POST.get("conversation", ""), request.POST.get("from", ""))
    form.problem = form.workspace_error = ""  # they matter when it starts
    if found.why_not or form.upload_errors:
        return _page(request, found, form, 400)
    asked = filling.ask(form, request.POST.get(filling.FIELD, ""))
    if isinstance(asked, Prompt):
        return redirect("workflow-filled", name, asked.pk)
    return _page(request, found, form, asked)


@login_required
@require_http_methods(["GET", "POST"])
def filled(request: PersonRequest, name: str, pk: int) -> HttpResponse:
    """Show the form with what a model found in a description; until then, a page that waits. On POST, stop reading."""
    found = _seen(request, name)
    prompt = get_object_or_404(filling.descriptions_of(request.user), pk=pk)
    told = filling.told_of(found.workflow, prompt)
    if told is None:
        raise Http404
    if request.method == "POST":
        cancel_prompt(prompt.pk, request.user)
        return redirect("workflow-filled", name, pk)
    if not prompt.ended and not found.why_not:
        if request.htmx:
            return HttpResponse(status=204)
        return render(request, "workflows/reading.html", {"workflow": found.workflow, "told": told} | _frame(request))
    if request.htmx:
        return HttpResponse(headers={"HX-Refresh": "true"})
    form = RunForm(found.workflow, request.user)
    _choose_chat(form, told["typed"].get("conversation", ""), told["typed"].get("from", ""))
    form.problem = form.workspace_error = ""
    filling.show(form, prompt, told)
    return _page(request, found, form)


@page_view
def history(request: PersonRequest) -> HttpResponse:
    """Show the person's runs of all workflows, or those that the address asks for; see runs_filter."""
    return _runs(request)


@page_view
def runs(request: PersonRequest, name: str) -> HttpResponse:
    """Show the person's own runs of a workflow, also to somebody who may not run it any more."""
    return _runs(request, _seen(request, name))


def _runs(request: PersonRequest, known: Seen | None = None) -> HttpResponse:
    user, found = request.user, known.workflow if known else None
    filters = runs_filter(user, request.GET, found.name if found else "")
    before, after = (row_id(request.GET.get(name, "")) for name in ("before", "after"))
    page = runs_page(user, filters.chosen, before, after)
    context: dict[str, Any] = {"runs": page, "filters": filters, "before": before or after}
    if request.htmx:
        return render(request, "workflows/runs_list.html", context | {"workflow": found})
    if known and user.has_perm("conversations.view_prompt") and user.is_staff:
        context["everybody"] = f"{reverse('admin:conversations_prompt_changelist')}?policy={known.workflow.policy_name}"
    context |= {"workflow": found, "why_not": known.why_not if known else None}
    return render(request, "workflows/runs.html", context | _frame(request))


@form_view
def star(request: PersonRequest, name: str) -> HttpResponse:
    """Give a workflow a star, or take it away, and show the selector again, with the search that it had."""
    stars.star_workflow(request.user, _seen(request, name).workflow.name, bool(request.POST.get("starred")))
    query = request.POST.get("q", "").strip()
    if request.htmx:
        return render(request, "workflows/flows.html", {"selector": selector(request.user, query)})
    return redirect(f"{reverse('workflows')}?{urlencode({'q': query} if query else {})}#flow-{name}")


@form_view
def star_run(request: PersonRequest, pk: int) -> HttpResponse:
    """Give a run a star, or take it away, and show the history again, as it was filtered; htmx gets the button."""
    run = get_object_or_404(runs_of(request.user), pk=pk)
    starred = bool(request.POST.get("starred"))
    stars.star_run(request.user, run, starred)
    if request.htmx:
        return render(request, "workflows/star_run.html", {"run": run, "starred": starred})
    filters = QueryDict(request.POST.get("filters", "")[:FILTERS_MOST]).urlencode()
    return redirect(f"{reverse('runs')}?{filters}#run-{pk}")


@form_view
def upload(request: PersonRequest, name: str) -> HttpResponse:
    """Store the file of the field `?upload=`, and return the field: with the file, or with the reason and 400."""
    found, key = _seen(request, name), request.POST.get("upload")
    known = RunForm(found.workflow, request.user).fields
    if found.why_not or not any(each.key == key and each.kind == "file" for each in known):
        raise Http404
    field = next(each for each in _received(request, found).fields if each.key == key)
    context = {"field": field, "workflow": found.workflow, "prefix": "f"}
    return render(request, "workflows/file_field.html", context, status=400 if field.errors else 200)


def _received(request: PersonRequest, found: Seen) -> RunForm:
    """Return the form that was sent, once its files are stored."""
    if found.why_not:
        return RunForm(found.workflow, request.user)
    posted, wrong = receive(found.workflow, request, request.user)
    return RunForm(found.workflow, request.user, posted, upload_errors=wrong)


def _posted(request: PersonRequest, found: Seen) -> HttpResponse:
    form, key = _received(request, found), key_of_form(request.POST.get("key", ""))
    _choose_chat(form, request.POST.get("conversation", ""), request.POST.get("from", ""))
    if form.schema_form.adds_rows or "upload" in request.POST or "remove" in request.POST:
        return _page(request, found, form, 400 if form.upload_errors else 200)
    payload, asks = form.payload(), found.workflow.confirm and "confirmed" not in request.POST
    if payload is None and form.takes_files and not asks and is_used(request.user, key):
        payload = form.schema_form.payload()  # it was sent twice, and the first has just taken its files
    if "change" in request.POST:
        return _page(request, found, form)
    if payload is None or form.workspace_error or form.problem:
        return _page(request, found, form, 400)
    if "later" in request.POST:
        return _later(request, found, form, payload)
    if asks:
        return _page(request, found, form, template="confirm", asked=form.shown(payload))
    return _start(request, found, form, payload, key)


def _start(request: PersonRequest, found: Seen, form: RunForm, payload: dict[str, JSON], key: str) -> HttpResponse:
    started = start(form, payload, key)
    if isinstance(started, Prompt):
        return redirect(f"{started.conversation.get_absolute_url()}#now")
    return _page(request, found, form, started)


def _later(request: PersonRequest, found: Seen, form: RunForm, payload: dict[str, JSON]) -> HttpResponse:
    """Ask when it is to run, or set the trigger and go to its page."""
    if not form.can_run_later:
        form.problem = NOT_LATER
        return _page(request, found, form, 400)
    later = run_later(form, payload, request.POST["later"])
    if later.made:
        messages.success(request, f"It runs {later.made.when}.")
        return redirect(later.made)
    if form.refused:
        return _page(request, found, form, later.status)
    return _page(request, found, form, later.status, "later", asked=form.shown(payload), later=later)


def _choose_chat(form: RunForm, chosen: str, origin: str) -> None:
    """Let it run in the chat that was chosen, "" for none. If that is not one of the person's, the form says so."""
    form.origin, form.chat = _own_chat(form.user, origin), _own_chat(form.user, chosen)
    if form.workflow.workspace == "required" and not chosen:
        form.workspace_error = NO_CHAT if form.chats else NO_CHATS
    if chosen and not form.chat:
        if form.workflow.workspace:
            form.workspace_error = NO_CHAT
        else:
            form.problem = GONE


def _own_chat(user: User, text: str) -> Conversation | None:
    pk = row_id(text)
    return own_chats(user).filter(pk=pk).first() if pk else None


def _filled(request: PersonRequest, found: Seen, form: RunForm) -> HttpResponse:
    """Show the form with what its address fills in. Nothing runs."""
    form.fill({name: valid_text("\n".join(request.GET.getlist(name))) for name in request.GET})
    return _page(request, found, form)


def _page(
    request: PersonRequest,
    found: Seen,
    form: RunForm,
    status: int = 200,
    template: str = "form",
    **more: Any,
) -> HttpResponse:
    """Show the form; instead of it the reason, with 403, if the person may not run it."""
    last = last_rows(found.workflow, request.user, LAST_MOST)
    context = {"workflow": found.workflow, "why_not": found.why_not, "run": form, "last": last, **more}
    context["for_each"] = why_no_batch(found.workflow) is None
    status = 403 if found.why_not else status
    page = render(request, f"workflows/{template}.html", context | _frame(request), status=status)
    if secret_fields(
        found.workflow
    ):  # other forms come back with what was typed, where the browser's button leads back
        add_never_cache_headers(page)
    return page


def _seen(request: PersonRequest, name: str) -> Seen:
    """Return a workflow as the person sees it, also if they only ran it once. Raises Http404 otherwise."""
    workflow = discovery.installed().get(name)
    if workflow is None:
        raise Http404
    if found := seen(request.user, name):
        return found
    if not runs_of(request.user, RunFilter(workflow=name)).exists():
        raise Http404
    return SeenWorkflow(workflow, workflow.permission or "", workflow.why_not(request.user))


def _frame(request: PersonRequest) -> dict[str, Any]:
    """Return the context of what stands around every page."""
    return {"sidebar": sidebar(request.user), "place": "workflows"}
