"""Files that tools made and people uploaded."""

from __future__ import annotations

from rest_framework.request import Request

from conversations.api.describe import FILE, operation
from conversations.api.views import ApiView
from conversations.files.download import Download, attachment
from conversations.models import File


class OneFile(ApiView):
    """One file."""

    @operation("Download a file", FILE)
    def get(self, request: Request, pk: int) -> Download:
        """Return the file's content, always as an attachment: it may come from a model and is treated as hostile."""
        return attachment(File.objects.visible_to(request.user).get(pk=pk))
