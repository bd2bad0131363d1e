"""The base classes of views that OpenAI's clients call."""

from __future__ import annotations

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from conversations.api.views import ApiView, KeyAuthentication, require_scope
from conversations.context.errors import openai_handler
from conversations.models import ApiKey, Scope


class OpenAIView(ApiView):
    """A view whose errors have the shape that OpenAI's clients read."""

    def get_exception_handler(self) -> Any:
        """Return what answers to an exception."""
        return openai_handler


class MayTalk(BasePermission):  # type: ignore[misc]
    """Allows keys with the scope `context`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Whether the request is allowed."""
        if not isinstance(request.auth, ApiKey):
            return False
        require_scope(request, Scope.CONTEXT)
        return True


class ContextView(OpenAIView):
    """A view of the agent, for API keys alone."""

    authentication_classes = [KeyAuthentication]
    permission_classes = [MayTalk]


class MayReadPrompt(BasePermission):  # type: ignore[misc]
    """Allows users who are signed in, and keys that may read or talk to the agent."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Whether the request is allowed."""
        if not (request.user and request.user.is_authenticated):
            return False
        require_scope(request, Scope.READ, Scope.CONTEXT)
        return True
