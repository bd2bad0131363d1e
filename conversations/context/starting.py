"""Starting the turn that a client's request asks for, or finding the one that it has started before."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from agents.engine.ledger import JSON
from conversations.api.errors import RequestRefused
from conversations.context.body import Asked, quotes
from conversations.context.marks import REQUEST, conversation_of, is_marked, mark, request_digest, sent_before
from conversations.models import ApiKey, Conversation, Origin, Prompt
from conversations.prompts.idempotency import KeyReused
from conversations.prompts.start import start_prompt

NO_CONVERSATION = "There is no such conversation, or it is not yours."
NO_TURN = "There is no such turn, or it is not yours."


def turn_of(key: ApiKey, asked: Asked, idempotency_key: str, *, again: bool) -> Prompt:
    """Return the turn whose answer is asked for, which is started now unless it was before.

    `again`: the client says that it tries again. Raises RequestRefused, and what start_prompt raises.
    """
    if asked.prompt is not None:
        found = Prompt.objects.visible_to(key.user).select_related("conversation").filter(pk=asked.prompt).first()
        if found is None:
            raise RequestRefused(404, "prompt_not_found", NO_TURN, param="metadata.prompt")
        return found
    digest = request_digest(asked.conversation, asked.messages)
    with transaction.atomic():
        # One by one: of the same request that arrives twice at once, the second finds what the first has started.
        User.objects.select_for_update(no_key=True).get(pk=key.user_id)
        if before := _started_before(key, idempotency_key, digest, again=again):
            return before
        conversation, unknown = _place(key, asked)
        prompt = start_prompt(
            conversation or Conversation(owner=key.user),
            key.user,
            asked.said,
            tier=asked.tier,
            origin=Origin.API,
            key=idempotency_key,
            from_client=_besides(unknown, asked.form),
        )
        mark(key, prompt, REQUEST, digest)
    return prompt


def _started_before(key: ApiKey, idempotency_key: str, digest: str, *, again: bool) -> Prompt | None:
    """Return the turn that the same request has started. Raises KeyReused for the key of another request."""
    if not idempotency_key:
        return sent_before(key, digest, again=again)
    found = Prompt.objects.filter(asked_by=key.user, request_key=idempotency_key).first()
    if found and not is_marked(key, found, digest):
        raise KeyReused(found.pk)
    return found


def _place(key: ApiKey, asked: Asked) -> tuple[Conversation | None, list[tuple[str, str]]]:
    """Return the conversation to go on in, None for a new one, and the texts that it does not know.

    Raises RequestRefused.
    """
    if asked.conversation is not None:
        named = Conversation.objects.visible_to(key.user).filter(pk=asked.conversation).first()
        if named is None:
            raise RequestRefused(404, "conversation_not_found", NO_CONVERSATION, param="metadata.conversation")
        return named, []
    if found := conversation_of(key, asked.earlier):
        return found, []
    if found := conversation_of(key, asked.answered):
        unanswered = asked.earlier[len(asked.answered) :]
        turns = found.prompts.filter(input__in=[text for _, text in unanswered])
        recorded = set(turns.values_list("input", flat=True))  # of turns that failed, or whose answer was lost
        return found, [each for each in unanswered if each[1] not in recorded]
    return None, asked.earlier


def _besides(unknown: list[tuple[str, str]], form: dict[str, JSON] | None) -> dict[str, JSON]:
    """Return what is recorded besides the message."""
    return {name: value for name, value in {"quotes": quotes(unknown), "form": form}.items() if value}
