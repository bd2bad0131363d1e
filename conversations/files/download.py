"""Downloads of files."""

from __future__ import annotations

from collections.abc import AsyncIterator

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from conversations.accounts.http import PersonRequest
from conversations.models import File


class Download(FileResponse):
    """A response that sends a file while reading it. Django alone would first read all of it into memory."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = iter(self)
        read = sync_to_async(lambda: next(pieces, b""))
        while piece := await read():
            yield piece


@login_required
@require_GET
def download(request: PersonRequest, pk: int) -> Download:
    """Send a file to the owner of its conversation. Raises Http404."""
    return attachment(get_object_or_404(File.objects.visible_to(request.user), pk=pk))


def attachment(file: File) -> Download:
    """Return a file as a download. It is never displayed here: a model's files may be hostile. Raises Http404."""
    try:
        content = file.content.open("rb")
    except FileNotFoundError as error:
        raise Http404("The file is no longer there.") from error
    response = Download(content, as_attachment=True, filename=file.name, content_type="application/octet-stream")
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response
