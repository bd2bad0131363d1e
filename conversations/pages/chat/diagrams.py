"""Diagrams as pictures: of what stands in a turn's texts, or in a Markdown file, for whoever may read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.cache import get_conditional_response

from conversations.accounts.http import PersonRequest
from conversations.database.erasable_cache import annotate_removed
from conversations.display.rendering.diagrams import LANGUAGE
from conversations.display.rendering.sources import find_source, strings_in
from conversations.models import Draft, File, Output, Prompt
from conversations.pages.decorators import page_view
from conversations.pages.files.images import SVG
from conversations.pages.files.kinds import Kind
from conversations.pages.files.previews import preview_of
from conversations.pages.files.sending import IMAGE_POLICY, confined
from conversations.pictures.children import Busy
from conversations.pictures.drawing import pictures
from conversations.pictures.theme import THEMES

RETRY_SECONDS = 5


@page_view
def of_prompt(request: PersonRequest, pk: int, digest: str) -> HttpResponse:
    """Return the picture of a diagram in one of a turn's texts. 404 if the turn is not the user's, or has none such."""
    prompt = get_object_or_404(annotate_removed(Prompt.objects.visible_to(request.user)), pk=pk)
    return _picture(request, digest, _texts(prompt), prompt)


@page_view
def of_file(request: PersonRequest, pk: int, digest: str) -> HttpResponse:
    """Return the picture of a diagram in what is shown of a Markdown file.

    404 if the file is not the user's, or has none such.
    """
    file = get_object_or_404(annotate_removed(File.objects.visible_to(request.user)), pk=pk)
    preview = preview_of(file)
    return _picture(request, digest, [preview.text] if preview.kind is Kind.MARKDOWN else [], file)


def _texts(prompt: Prompt) -> Iterator[str]:
    """Yield the texts of a turn that may hold diagrams: what streams now, and what is recorded."""
    yield from Draft.objects.of(prompt).filter(text__contains=LANGUAGE).values_list("text", flat=True)
    for output in Output.objects.of(prompt).filter(data__contains=LANGUAGE):
        yield from strings_in(output.content)


def _picture(request: PersonRequest, digest: str, texts: Iterable[str], row: Any) -> HttpResponse:
    theme = next((theme for theme in THEMES if theme == request.GET.get("theme", THEMES[0])), None)
    if theme is None:
        return _words(f"The theme is one of: {', '.join(THEMES)}.", HTTPStatus.BAD_REQUEST)
    source = find_source(digest, texts, row.removed)
    if source is None:
        raise Http404
    try:
        picture = pictures.of(source, theme, row.removed)
    except Busy:
        busy = _words("Many diagrams are being drawn. Try again in a moment.", HTTPStatus.SERVICE_UNAVAILABLE)
        busy["Retry-After"] = str(RETRY_SECONDS)
        return busy
    if not picture.svg:
        return _words(picture.refused, HTTPStatus.UNPROCESSABLE_ENTITY)
    response = confined(HttpResponse(picture.svg, content_type=SVG), IMAGE_POLICY)
    response["Cache-Control"] = "private, no-cache"  # what is redacted is not shown again
    response["ETag"] = f'"{sha256(response.content).hexdigest()[:32]}"'
    unchanged = get_conditional_response(request, etag=response["ETag"], response=response)
    return unchanged if isinstance(unchanged, HttpResponse) else response


def _words(words: str, status: HTTPStatus) -> HttpResponse:
    response = HttpResponse(words, status=status, content_type="text/plain; charset=utf-8")
    response["Cache-Control"] = "no-store"
    return response
