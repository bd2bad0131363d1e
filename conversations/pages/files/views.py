"""Files on pages: the preview of one, and what its preview loads."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils.cache import patch_vary_headers

from conversations.accounts.http import PersonRequest
from conversations.models import Conversation, File
from conversations.pages.csp import allow_own_frames
from conversations.pages.decorators import page_view
from conversations.pages.files.kinds import Kind
from conversations.pages.files.previews import preview_of, read_html, read_kind, shown_image
from conversations.pages.files.reading import Unreadable
from conversations.pages.files.sending import html_response, image_response, pdf_response
from conversations.pages.sidebar import sidebar

NAMESAKES_MOST = 20
"""Files of one name among which the newest image is looked for."""


@page_view
def view(request: PersonRequest, pk: int) -> HttpResponse:
    """Show a file; to htmx, only its preview."""
    file = _own_file(request, pk)
    context = {"file": file, "conversation": file.conversation, "preview": preview_of(file)}
    if request.htmx:
        response = render(request, "conversations/files/preview.html", context)
    else:
        context["sidebar"] = sidebar(request.user, "", archived=False)
        response = render(request, "conversations/files/page.html", context)
    patch_vary_headers(response, ["HX-Request"])  # or a browser may go back to the preview as if it was the page
    return allow_own_frames(response)


@page_view
def frame(request: PersonRequest, pk: int) -> HttpResponseBase:
    """Return what a preview has in its frame: an HTML file, or a PDF. 404 for any other."""
    file = _own_file(request, pk)
    try:
        kind = read_kind(file)
        if kind is Kind.PDF:
            return pdf_response(request, file)
        html = read_html(file) if kind is Kind.HTML else None
    except Unreadable as error:
        raise Http404 from error
    if html is None:
        raise Http404
    return html_response(html)


@page_view
def image(request: PersonRequest, pk: int) -> HttpResponseBase:
    """Return a file that is an image. 404 for any other."""
    return _image(request, [_own_file(request, pk)])


@page_view
def own_image(request: PersonRequest, pk: int, name: str) -> HttpResponseBase:
    """Return the newest image of a conversation with this name, or at this path in its workspace. 404 for no image."""
    found = get_object_or_404(Conversation.objects.visible_to(request.user), pk=pk)
    while name.startswith("./"):
        name = name[2:]
    if "\0" in name:  # which a database refuses
        raise Http404
    return _image(request, found.files.filter(Q(name=name) | Q(path=name)).order_by("-pk")[:NAMESAKES_MOST])


def _image(request: PersonRequest, files: Iterable[File]) -> HttpResponseBase:
    """Return the first of these files that is an image. Raises Http404 if none is."""
    for file in files:
        if shown := shown_image(file):
            return image_response(request, file, shown)
    raise Http404


def _own_file(request: PersonRequest, pk: int) -> File:
    """Return a file for its reader. Raises Http404 if it is not theirs."""
    return get_object_or_404(File.objects.visible_to(request.user).select_related("conversation"), pk=pk)
