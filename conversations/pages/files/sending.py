"""Sending the content of a file for display: as the type that it was found to be, and unable to do anything."""

from __future__ import annotations

import re
from typing import TypeVar

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag

from conversations.files.download import Download
from conversations.models import File
from conversations.pages.files.images import Image

Response = TypeVar("Response", bound=HttpResponseBase)

IMAGE_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'"
"""Of an image that is opened by itself: of an SVG, its own style is all that it may use."""
HTML_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
PDF_POLICY = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'self'"
"""Without `sandbox`, under which the viewers of some browsers do not run. Older Chromium needs the middle two."""

_CONNECTING = re.compile(r"<(/?)(link|i?frame)\b", re.IGNORECASE)
"""The tags for which Chromium connects to another site although the policy forbids what they load: `preconnect` is not
subject to it, and the page of a frame is refused only after that. The name of a host can carry what was read."""


def image_response(request: HttpRequest, file: File, image: Image) -> HttpResponseBase:
    """Return an image. Raises Http404 if its content is gone."""
    return _streamed(request, file, image.media_type, IMAGE_POLICY)


def pdf_response(request: HttpRequest, file: File) -> HttpResponseBase:
    """Return a PDF for the viewer of a browser. Raises Http404 if its content is gone."""
    return _framed(_streamed(request, file, "application/pdf", PDF_POLICY))


def html_response(html: str) -> HttpResponseBase:
    """Return HTML that runs no script, sends no form and asks no site for anything."""
    unconnected = _CONNECTING.sub(_without_effect, html)
    response = HttpResponse(unconnected.encode("utf-8", "replace"), content_type="text/html; charset=utf-8")
    response["X-DNS-Prefetch-Control"] = "off"
    return _framed(confined(response, HTML_POLICY))


def _streamed(request: HttpRequest, file: File, media_type: str, policy: str) -> HttpResponseBase:
    """Return a file, read while it is sent; 304 to a browser that has it, which asks each time."""
    etag = quote_etag(file.sha256)
    response: HttpResponseBase | None = get_conditional_response(request, etag=etag)
    if response is None:
        try:
            response = Download(file.content.open("rb"), filename=file.name, content_type=media_type)
        except (OSError, ValueError) as error:
            raise Http404("The file is no longer there.") from error
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    return confined(response, policy)


def confined(response: Response, policy: str) -> Response:
    """Return a response that is what its type says, under this policy."""
    response["Content-Security-Policy"] = policy
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _framed(response: HttpResponseBase) -> HttpResponseBase:
    """Let pages of this site show a response in a frame."""
    response["X-Frame-Options"] = "SAMEORIGIN"
    return response


def _without_effect(tag: re.Match[str]) -> str:
    """Return the beginning of a tag that has its place but does nothing."""
    return "<meta" if tag[2].lower() == "link" else f"<{tag[1]}x-frame"
