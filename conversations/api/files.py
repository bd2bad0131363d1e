"""Files that tools made and people gave."""

from __future__ import annotations

from rest_framework.request import Request

from conversations.api.describe import FILE, described
from conversations.api.views import ApiView
from conversations.files.download import Download, attachment
from conversations.models import File


class OneFile(ApiView):
    """One file."""

    @described("Download a file", FILE)
    def get(self, request: Request, pk: int) -> Download:
        """Its content, always as an attachment: what is in it is a model's, and hostile."""
        return attachment(File.objects.visible_to(request.user).get(pk=pk))
