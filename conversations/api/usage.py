"""Usage: tokens and cost of the user who makes the request."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from conversations.api import shapes
from conversations.api.describe import operation
from conversations.api.views import ApiView


class UsageView(ApiView):
    """Your own usage."""

    @operation("Get your usage", shapes.OwnUsage)
    def get(self, request: Request) -> Response:
        """Return the tokens and cost of the last 24 hours and the last 30 days, and your quota.

        `keys` has what your API keys used under `/v1`. It is at most a few seconds old.
        """
        return Response(shapes.OwnUsage.of(request.user.pk))
