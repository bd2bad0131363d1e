"""What was erased or redacted after a backup, and is back once it is restored: people, conversations, contents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from django.contrib.auth import get_user_model

from conversations.erasure.people import erased_people
from conversations.ledger.redacted import sha256
from conversations.models import Conversation, Erasure, Redaction, Step


@dataclass
class TakenOut:
    """What was erased: `people` by id, with when they joined; `steps` by conversation and seq, with the old sha256."""

    conversations: set[int] = field(default_factory=set)
    people: dict[int, datetime] = field(default_factory=dict)
    steps: dict[int, dict[int, str]] = field(default_factory=dict)

    @classmethod
    def now(cls) -> TakenOut:
        """Return what has been erased from this site so far."""
        found = cls(set(Erasure.objects.values_list("conversation_id", flat=True)))
        found.people = {user.pk: user.date_joined for user in erased_people()}
        for conversation, seq, digest in Redaction.objects.values_list("conversation_id", "seq", "sha256"):
            found.steps.setdefault(conversation, {})[seq] = digest
        return found

    def again(self) -> Iterator[str]:
        """Yield the commands that erase again what has come back, without their `--by` and `--reason`."""
        erased = {user.pk for user in erased_people()}
        people = get_user_model().objects.filter(pk__in=self.people.keys() - erased).order_by("pk")
        back = [user for user in people if user.date_joined == self.people[user.pk]]
        yield from (f"erase_user {user.get_username()}" for user in back)  # with all their conversations
        others = Conversation.objects.filter(pk__in=self.conversations).exclude(owner__in=back).order_by("pk")
        yield from (f"erase {pk}" for pk in others.values_list("pk", flat=True))
        for conversation, digests in sorted(self.steps.items()):
            steps = Step.objects.filter(conversation=conversation, seq__in=digests).order_by("seq")
            held = [str(step.seq) for step in steps if sha256(step.payload) == digests[step.seq]]
            if held:
                yield f"redact {conversation} {' '.join(held)}"
