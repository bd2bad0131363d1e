"""Conversations: those of whoever asks."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from agents.models import SystemPrompt
from conversations.api import shapes
from conversations.api.bodies import NewConversation, read
from conversations.api.describe import LIST, described
from conversations.api.errors import Invalid, Refused
from conversations.api.paging import page_of
from conversations.api.views import View
from conversations.models import Conversation
from conversations.prompts import start_conversation
from conversations.public import conversation_json

NO_KEY = "A conversation alone takes no Idempotency-Key, as nothing runs in it: send the key with its first prompt."


class Conversations(View):
    """The list, and new ones."""

    @described("List conversations", shapes.ConversationPage, parameters=LIST)
    def get(self, request: Request) -> Response:
        """The conversations you own, those that something was last said in first."""
        return page_of(request, _mine(request).order_by("-updated_at", "-pk"), conversation_json)

    @described("Start a conversation", {201: shapes.Conversation}, request=NewConversation)
    def post(self, request: Request) -> Response:
        """A new conversation, in which nothing was said yet."""
        if "Idempotency-Key" in request.headers:
            raise Refused(400, "key_not_taken", NO_KEY)
        body = read(request, NewConversation)
        made = start_conversation(request.user, body.title.strip(), _chosen(body.system_prompt))
        return Response(conversation_json(made), status=201)


class OneConversation(View):
    """One conversation."""

    @described("Get a conversation", shapes.Conversation)
    def get(self, request: Request, pk: int) -> Response:
        """One of the conversations you own."""
        return Response(conversation_json(_mine(request).get(pk=pk)))


def _mine(request: Request) -> QuerySet[Conversation]:
    return Conversation.objects.visible_to(request.user).select_related("system_prompt")


def _chosen(named: int | str | None) -> SystemPrompt | None:
    """The system prompt of this id or name. Raises Invalid where there is none."""
    if named is None:
        return None
    found = SystemPrompt.objects.filter(**({"pk": named} if isinstance(named, int) else {"name": named})).first()
    if found is None:
        raise Invalid({"system_prompt": ["There is no system prompt of this id or name."]})
    return found
