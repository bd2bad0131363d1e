"""Choosing the system prompt of a conversation: of one that begins, and of one that goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.db.models import Exists, QuerySet
from django.http import HttpRequest

from agents.models import SystemPrompt
from conversations.database.ids import row_id
from conversations.models import Conversation, ConversationKind
from conversations.prompts.system_prompts import NotChoosable, choosable, find_choosable, without_choice

OWN = "The agent\N{RIGHT SINGLE QUOTATION MARK}s own"


@dataclass(frozen=True)
class Choice:
    """The system prompts that can be chosen, none if there is no choice; and the one that is `chosen`, if one is.

    A retired one is offered only where it is chosen.
    """

    offered: Sequence[SystemPrompt]
    chosen: SystemPrompt | None

    @classmethod
    def of(cls, conversation: Conversation) -> Choice:
        """Return the choice in a conversation."""
        return cls._with(conversation.system_prompt)

    @classmethod
    def given(cls, request: HttpRequest) -> Choice:
        """Return the choice for a new conversation, with the one that an address or a form names."""
        named = request.POST.get("system_prompt") or request.GET.get("system_prompt", "")
        try:
            return cls._with(chosen_by_id(named))
        except NotChoosable:
            return cls._with(None)

    @classmethod
    def _with(cls, chosen: SystemPrompt | None) -> Choice:
        offered = list(choosable())
        if chosen and chosen not in offered:
            offered.append(chosen)
        return cls(offered if chosen or len(offered) > 1 else (), chosen)

    def named(self, text: str) -> SystemPrompt | None:
        """Return the one with this id, or None for an empty text. Raises NotChoosable."""
        return self.chosen if self.chosen and text == str(self.chosen.pk) else chosen_by_id(text)

    @cached_property
    def otherwise(self) -> str:
        """What a conversation has that chose none, in words."""
        found = without_choice()
        return f"Default ({found})" if found else OWN


def chosen_by_id(text: str) -> SystemPrompt | None:
    """Return the system prompt with this id; None for an empty text. Raises NotChoosable."""
    return find_choosable(row_id(text) or 0) if text else None


def annotate_choice(conversations: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Let each of these conversations know whether there is a choice: more than one system prompt."""
    return conversations.select_related("system_prompt").annotate(offers=Exists(choosable()[1:2]))


def may_choose(conversation: Conversation) -> bool:
    """Whether a system prompt can be chosen in this conversation, which was read with `annotate_choice`."""
    offers = bool(getattr(conversation, "offers", False)) or conversation.system_prompt_id is not None
    return offers and conversation.kind == ConversationKind.CHAT
