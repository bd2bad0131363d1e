"""The base classes of the API's views."""

from __future__ import annotations

from typing import Any

from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from conversations.api.auth import HasScope, KeyAuthentication
from conversations.api.bodies import StrictJSON
from conversations.api.errors import NOT_FOUND, RequestRefused
from conversations.api.limits import Requests, Starts
from conversations.models import Scope


class ApiView(APIView):  # type: ignore[misc]
    """A view of the API. `scope`: the scope that a key needs to change something here."""

    authentication_classes = [KeyAuthentication, SessionAuthentication]  # the key first: then cookies are ignored
    permission_classes = [HasScope]
    throttle_classes = [Requests]
    parser_classes = [StrictJSON]
    renderer_classes = [JSONRenderer]
    metadata_class = None
    scope = Scope.CHAT

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, rate-limit and authorise the request. Failed authentications count towards the limit too."""
        request.accepted_renderer, request.accepted_media_type = self.perform_content_negotiation(request)
        request.version, request.versioning_scheme = None, None
        try:
            self.perform_authentication(request)
        except AuthenticationFailed:
            self.check_throttles(request)
            raise
        self.check_throttles(request)
        self.check_permissions(request)

    def perform_content_negotiation(self, request: Request, force: bool = True) -> tuple[JSONRenderer, str]:
        """Return JSON, whatever the client accepts: there is nothing else."""
        renderer = self.get_renderers()[0]
        return renderer, renderer.media_type


class StartingView(ApiView):
    """A view whose POST starts a turn, which has a limit of its own."""

    def get_throttles(self) -> list[Requests]:
        """Return the limits of this request."""
        return [Requests(), *([Starts()] if self.request.method == "POST" else [])]


class Unknown(ApiView):
    """Every other address under /api/."""

    authentication_classes = []
    permission_classes = []

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse the request, whatever its method. Raises RequestRefused."""
        super().initial(request, *args, **kwargs)
        slash = "" if request.path.endswith("/") else " Addresses end with a slash."
        raise RequestRefused(404, "not_found", NOT_FOUND + slash)
