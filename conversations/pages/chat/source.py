"""The text of a message or an answer as it was written, for whoever copies it."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404

from agents.engine.outputs.kinds import ResultOutput, TextOutput
from conversations.accounts.http import PersonRequest
from conversations.display.call import displayed_result
from conversations.models import Output, Prompt
from conversations.pages.decorators import page_view


@page_view
def message(request: PersonRequest, pk: int) -> HttpResponse:
    """Return the message of a turn. 404 if it is not the user's, or if there is none."""
    return _text(get_object_or_404(Prompt.objects.visible_to(request.user), pk=pk, visible=True).input)


@page_view
def answer(request: PersonRequest, pk: int, position: int) -> HttpResponse:
    """Return the Markdown of one text of a turn. 404 if it is not the user's, or is no text."""
    outputs = Output.objects.visible_to(request.user).filter(prompt__visible=True)
    entry = get_object_or_404(outputs, prompt=pk, position=position).entry()
    if isinstance(entry, ResultOutput):
        return _text(displayed_result(entry.output)[0])
    return _text(entry.text if isinstance(entry, TextOutput) else None)


def _text(text: str | None) -> HttpResponse:
    if not text:
        raise Http404
    return HttpResponse(text, content_type="text/plain; charset=utf-8")
