"""Authentication by API key or session, and what a key may be used for."""

from __future__ import annotations

from typing import Any

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from conversations.accounts.keys import SCHEME, allows, key_from_header
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
    """Allows users who are signed in, and keys with the scope that the request needs. Every key may read."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Whether the request is allowed. A session may do whatever its user may."""
        if not (request.user and request.user.is_authenticated):
            return False
        if not isinstance(request.auth, ApiKey):
            return True
        wanted: Scope = Scope.READ if request.method in SAFE_METHODS else view.scope
        self.message = f"This key lacks the scope {wanted.value!r}: create one that has it on your account page."
        return allows(request.auth, wanted)
