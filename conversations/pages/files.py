"""Downloads."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from conversations.models import File
from conversations.pages.chat import PersonRequest


@login_required
@require_GET
def download(request: PersonRequest, pk: int) -> FileResponse:
    """A file, for its reader."""
    return attachment(get_object_or_404(File.objects.visible_to(request.user), pk=pk))


def attachment(file: File) -> FileResponse:
    """A file, to be saved and never shown here: what is in it is a model's, and hostile. Raises Http404."""
    try:
        content = file.content.open("rb")
    except FileNotFoundError as error:
        raise Http404("The file is no longer there.") from error
    response = FileResponse(content, as_attachment=True, filename=file.name, content_type="application/octet-stream")
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response
