"""The print view."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render

from conversations.accounts.http import PersonRequest
from conversations.display.html_cache import use_html_cache
from conversations.pages.chat.views import own_conversation
from conversations.pages.decorators import page_view
from conversations.pages.printing.document import printable, printed_turns

TURNS_MOST = 200
"""Turns in one document. A longer conversation is printed in parts: 200 long answers take some seconds to render."""


@page_view
def print_view(request: PersonRequest, pk: int) -> HttpResponse:
    """Show a whole conversation as a document to print, always light: paper is. `part`: which 200 turns of more."""
    found = own_conversation(request, pk)
    part = Paginator(printable(found), TURNS_MOST).get_page(request.GET.get("part"))
    turns = list(printed_turns(list(part)))
    context = {
        "conversation": found,
        "owner": found.owner.get_full_name() or found.owner.get_username(),
        "turns": turns,
        "sources": [source for turn in turns for source in turn.sources],
        "part": part,
        "theme": "light",
    }
    with use_html_cache(found):
        return render(request, "conversations/print/page.html", context)
