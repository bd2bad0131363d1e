"""Conversations of the user who makes the request, the files in them, and the system prompts for them."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Max, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from agents.models import SystemPrompt
from conversations.api import shapes
from conversations.api.bodies import ChangedConversation, Erase, NewConversation, read
from conversations.api.describe import CONVERSATIONS, FILE, LIST, operation
from conversations.api.errors import Invalid, RequestRefused
from conversations.api.paging import paginate, paginate_together
from conversations.api.views import ApiView
from conversations.display.search import search
from conversations.display.shapes.record import Conversation
from conversations.erasure.conversations import TurnRuns, erase
from conversations.files.download import Download, attachment
from conversations.models import Conversation as ConversationRow
from conversations.models import File
from conversations.prompts.listing import archive, choose_system_prompt, rename, unarchive
from conversations.prompts.start import start_conversation
from conversations.prompts.system_prompts import choosable, find_choosable

NO_KEY = "Creating a conversation takes no Idempotency-Key, as nothing runs in it: send the key with its first prompt."
BOOLEANS = {None: None, "true": True, "false": False}
FOUND_MOST = 200
"""The maximum number of conversations that a search returns."""


class Conversations(ApiView):
    """The list of conversations; creating one."""

    @operation("List conversations", shapes.ConversationPage, parameters=CONVERSATIONS)
    def get(self, request: Request) -> Response:
        """List the conversations you own, most recently updated first."""
        return paginate_together(request, _requested(request).order_by("-updated_at", "-pk"), Conversation.of_all)

    @operation("Start a conversation", {201: Conversation}, request=NewConversation)
    def post(self, request: Request) -> Response:
        """Create a conversation without any messages."""
        if "Idempotency-Key" in request.headers:
            raise RequestRefused(400, "key_not_taken", NO_KEY)
        body = read(request, NewConversation)
        made = start_conversation(request.user, body.title.strip(), _system_prompt(body.system_prompt))
        return Response(Conversation.of(made), status=201)


class OneConversation(ApiView):
    """One conversation."""

    @operation("Get a conversation", Conversation)
    def get(self, request: Request, pk: int) -> Response:
        """Return one of the conversations you own."""
        return Response(Conversation.of(_mine(request).get(pk=pk)))

    @operation("Change a conversation", Conversation, request=ChangedConversation)
    def patch(self, request: Request, pk: int) -> Response:
        """Rename or archive a conversation, or choose its system prompt. A new message unarchives it."""
        found, body = _mine(request).get(pk=pk), read(request, ChangedConversation)
        with transaction.atomic():
            if "system_prompt" in body.model_fields_set:
                choose_system_prompt(found, _system_prompt(body.system_prompt))
            if body.title is not None:
                rename(found, body.title)
            if body.archived is not None:
                (archive if body.archived else unarchive)(found)
        return Response(Conversation.of(found))

    @operation("Delete a conversation", {204: None}, request=Erase)
    def delete(self, request: Request, pk: int) -> Response:
        """Permanently delete a conversation and everything in it. Who did it, when and why stays on record.

        409 `turn_in_progress` while a worker runs a turn of it: stop the turn first.
        """
        found = _mine(request).get(pk=pk)
        try:
            erase(found, request.user, read(request, Erase).reason)
        except TurnRuns as error:
            raise RequestRefused(409, "turn_in_progress", str(error), prompt=found.active_prompt_id) from error
        return Response(status=204)


class SystemPrompts(ApiView):
    """The list of system prompts."""

    @operation("List system prompts", shapes.SystemPromptPage, parameters=LIST)
    def get(self, request: Request) -> Response:
        """List the system prompts that can be chosen for a conversation, by name."""
        # Grouping drops the model's own order.
        listed = choosable().annotate(version=Max("versions__number")).order_by("name")
        return paginate(request, listed, shapes.SystemPrompt.read)


class OneFile(ApiView):
    """One file."""

    @operation("Download a file", FILE)
    def get(self, request: Request, pk: int) -> Download:
        """Return the file's content, always as an attachment: it may come from a model and is treated as hostile."""
        return attachment(File.objects.visible_to(request.user).get(pk=pk))


def _requested(request: Request) -> QuerySet[ConversationRow]:
    """Return the conversations that the query asks for. Raises Invalid."""
    mine, text = _mine(request), request.query_params.get("search", "").strip()
    given = request.query_params.get("archived")
    if given not in BOOLEANS:
        raise Invalid({"archived": ["Write true or false."]})
    archived = BOOLEANS[given]
    if archived is not None or not text:
        mine = mine.filter(archived_at__isnull=not archived)
    return mine.filter(pk__in=search(mine, text, FOUND_MOST)) if text else mine


def _mine(request: Request) -> QuerySet[ConversationRow]:
    return ConversationRow.objects.visible_to(request.user).select_related("system_prompt")


def _system_prompt(named: int | str | None) -> SystemPrompt | None:
    """Return the system prompt with this id or name. Raises NotChoosable."""
    return None if named is None else find_choosable(named)
