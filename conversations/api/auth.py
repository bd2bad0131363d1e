"""Who asks: a key, or somebody's session; and what the key may be used for."""

from __future__ import annotations

from typing import Any

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from conversations.accounts.keys import SCHEME, allows, key_from_header
from conversations.models import ApiKey, Scope

BAD_KEY = "This key is not known, or it was revoked or has expired: make a new one on your account page."


class KeyAuthentication(BaseAuthentication):  # type: ignore[misc]
    """`Authorization: Bearer <key>`. Where the header is there, no cookie counts."""

    def authenticate(self, request: Request) -> tuple[Any, ApiKey] | None:
        """The key's user and the key; None where the header speaks of no key. Raises AuthenticationFailed."""
        header = get_authorization_header(request).decode("latin-1")
        if header.partition(" ")[0].lower() != SCHEME:
            return None
        key = key_from_header(header)
        if key is None:
            raise AuthenticationFailed(BAD_KEY)
        return key.user, key

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        return SCHEME.title()


class Allowed(BasePermission):  # type: ignore[misc]
    """Somebody who is known, with a key that may be used for this. To read is part of every key."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Whether the request may go on; a session may do what its person may."""
        if not (request.user and request.user.is_authenticated):
            return False
        if not isinstance(request.auth, ApiKey):
            return True
        wanted: Scope = Scope.READ if request.method in SAFE_METHODS else view.scope
        self.message = f"This key has no scope {wanted.value!r}: make one that has it on your account page."
        return allows(request.auth, wanted)
