"""Conversations: those of whoever asks."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from agents.models import SystemPrompt
from conversations.api import shapes
from conversations.api.bodies import ChangedConversation, Erase, NewConversation, read
from conversations.api.describe import CONVERSATIONS, described
from conversations.api.errors import Invalid, RequestRefused
from conversations.api.paging import page_together
from conversations.api.views import ApiView
from conversations.display.json import conversation_json, conversations_json
from conversations.display.search import search
from conversations.erasure.conversations import TurnRuns, erase
from conversations.models import Conversation
from conversations.prompts.listing import archive, rename, unarchive
from conversations.prompts.start import start_conversation

NO_KEY = "A conversation alone takes no Idempotency-Key, as nothing runs in it: send the key with its first prompt."
FOUND_MOST = 200
"""Conversations that a search finds."""


class Conversations(ApiView):
    """The list, and new ones."""

    @described("List conversations", shapes.ConversationPage, parameters=CONVERSATIONS)
    def get(self, request: Request) -> Response:
        """The conversations you own, those that something was last said in first."""
        return page_together(request, _listed(request).order_by("-updated_at", "-pk"), conversations_json)

    @described("Start a conversation", {201: shapes.Conversation}, request=NewConversation)
    def post(self, request: Request) -> Response:
        """A new conversation, in which nothing was said yet."""
        if "Idempotency-Key" in request.headers:
            raise RequestRefused(400, "key_not_taken", NO_KEY)
        body = read(request, NewConversation)
        made = start_conversation(request.user, body.title.strip(), _chosen(body.system_prompt))
        return Response(conversation_json(made), status=201)


class OneConversation(ApiView):
    """One conversation."""

    @described("Get a conversation", shapes.Conversation)
    def get(self, request: Request, pk: int) -> Response:
        """One of the conversations you own."""
        return Response(conversation_json(_mine(request).get(pk=pk)))

    @described("Change a conversation", shapes.Conversation, request=ChangedConversation)
    def patch(self, request: Request, pk: int) -> Response:
        """Rename it, put it away, or put it back. A new message in it puts it back too."""
        found, body = _mine(request).get(pk=pk), read(request, ChangedConversation)
        with transaction.atomic():
            if body.title is not None:
                rename(found, body.title)
            if body.archived is not None:
                (archive if body.archived else unarchive)(found)
        return Response(conversation_json(found))

    @described("Delete a conversation", {204: None}, request=Erase)
    def delete(self, request: Request, pk: int) -> Response:
        """Delete it, for good, with all that was said and done in it. Who did it, when and why stays on record.

        409 `turn_in_progress` while a worker is at a turn of it: stop that first.
        """
        found = _mine(request).get(pk=pk)
        try:
            erase(found, request.user, read(request, Erase).reason)
        except TurnRuns as error:
            raise RequestRefused(409, "turn_in_progress", str(error), prompt=found.active_prompt_id) from error
        return Response(status=204)


def _listed(request: Request) -> QuerySet[Conversation]:
    """Those that are asked for. Raises Invalid."""
    mine, text, archived = _mine(request), request.query_params.get("search", "").strip(), _flag(request, "archived")
    if archived is not None or not text:
        mine = mine.filter(archived_at__isnull=not archived)
    return mine.filter(pk__in=search(mine, text, FOUND_MOST)) if text else mine


def _flag(request: Request, name: str) -> bool | None:
    """A yes or no of the query; None where it is left out. Raises Invalid."""
    given = request.query_params.get(name)
    if given not in (None, "true", "false"):
        raise Invalid({name: ["Write true or false."]})
    return None if given is None else given == "true"


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
