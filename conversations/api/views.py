"""The base classes of the API's views: authentication by API key or session, scopes of keys, and rate limits.

Rates are limited for one user, with all their keys and pages together, or for one address of unknown clients. Requests
are counted in Django's cache. By default each web process has its own, so that several processes let through several
times as much. A shared cache in the settings makes the limits exact.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.throttling import UserRateThrottle
from rest_framework.utils.encoders import JSONEncoder
from rest_framework.views import APIView

from conversations.accounts.keys import SCHEME, allows, key_from_header
from conversations.accounts.throttle import client_address
from conversations.api.bodies import StrictJSON
from conversations.api.errors import NOT_FOUND, RequestRefused
from conversations.display.shapes.base import Shape
from conversations.models import ApiKey, Scope

BAD_KEY = "This key is unknown, revoked or expired: create a new one on your account page."


class KeyAuthentication(BaseAuthentication):  # type: ignore[misc]
    """`Authorization: Bearer <key>`. If the header is present, cookies are ignored."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey] | None:
        """Return the user of the key, and the key; None if the header has no key. Raises AuthenticationFailed."""
        header = get_authorization_header(request).decode("latin-1")
        if header.partition(" ")[0].lower() != SCHEME:
            return None
        key = key_from_header(header)
        if key is None:
            raise AuthenticationFailed(BAD_KEY)
        return key.user, key

    def authenticate_header(self, request: Request) -> str:
        """Return the WWW-Authenticate header of a 401."""
        return SCHEME.title()


class HasScope(BasePermission):  # type: ignore[misc]
    """Allows users who are signed in, and keys with a scope that the request needs."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Whether the request is allowed. A session may do whatever its user may."""
        if not (request.user and request.user.is_authenticated):
            return False
        require_scope(request, *((Scope.READ,) if request.method in SAFE_METHODS else view.scopes))
        return True


def require_scope(request: Request, *scopes: Scope) -> None:
    """Raise PermissionDenied for a key that has none of these scopes. A session may do whatever its user may."""
    if isinstance(request.auth, ApiKey) and not any(allows(request.auth, scope) for scope in scopes):
        named = " or ".join(repr(scope.value) for scope in dict.fromkeys(scopes))
        raise PermissionDenied(f"This key lacks the scope {named}: create one that has it on your account page.")


class Requests(UserRateThrottle):  # type: ignore[misc]
    """All requests: AGENTSITE_API_REQUESTS a minute."""

    scope = "requests"
    setting = "AGENTSITE_API_REQUESTS"

    def get_rate(self) -> str:
        """Return the limit."""
        return f"{getattr(settings, self.setting)}/min"

    def get_ident(self, request: Request) -> str:
        """Return what unknown clients are counted by: their address. Users are counted by their id."""
        return f"address-{client_address(request)}"


class Starts(Requests):
    """Requests that start turns: AGENTSITE_API_STARTS a minute."""

    scope = "starts"
    setting = "AGENTSITE_API_STARTS"


class ShapeEncoder(JSONEncoder):  # type: ignore[misc]
    """The framework's encoder, for responses that are shapes or hold some."""

    def default(self, obj: Any) -> Any:
        """Return what is encoded instead of an object that is not JSON."""
        return obj.json_value() if isinstance(obj, Shape) else super().default(obj)


class ShapeRenderer(JSONRenderer):  # type: ignore[misc]
    """Renders responses as JSON."""

    encoder_class = ShapeEncoder


class ApiView(APIView):  # type: ignore[misc]
    """A view of the API. `scopes`: those of which a key needs one to change something here; for all else, `read`."""

    authentication_classes = [KeyAuthentication, SessionAuthentication]  # the key first: then cookies are ignored
    permission_classes = [HasScope]
    throttle_classes = [Requests]
    parser_classes = [StrictJSON]
    renderer_classes: list[Any] = [ShapeRenderer]
    metadata_class = None
    scopes: tuple[Scope, ...] = (Scope.CHAT,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, authorise and rate-limit the request. What is refused counts towards the limit too."""
        try:
            super().initial(request, *args, **kwargs)
        except (AuthenticationFailed, NotAuthenticated, PermissionDenied):
            self.check_throttles(request)
            raise

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
