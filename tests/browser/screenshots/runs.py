"""What the people of the company started by name."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from agents.engine.ledger import JSON
from conversations.models import Conversation, Prompt
from tests.agentsite.processes import wait_for
from workflows import discovery
from workflows.batches.starting import start_batch
from workflows.models import WorkflowSetting
from workflows.running import start_run

LONG = "The complete harbour guide, second edition, with the tide tables that were left out of the first"


def ran(
    owner: User, name: str, input: dict[str, JSON], state: str, *, days: float = 0, conversation: int | None = None
) -> int:
    """A run that has come to this state, as it began so many days ago; where it is."""
    chat = Conversation.objects.get(pk=conversation) if conversation else None
    prompt = start_run(discovery.installed()[name], owner, input, conversation=chat)
    wait_for(lambda: Prompt.objects.get(pk=prompt.pk).state == state)
    if days:
        then = timezone.now() - timedelta(days=days)
        Conversation.objects.filter(pk=prompt.conversation_id).update(updated_at=then, created_at=then)
        Prompt.objects.filter(pk=prompt.pk).update(created_at=then)
        Prompt.objects.filter(pk=prompt.pk).ended().update(ended_at=then + timedelta(minutes=7))
    return prompt.conversation_id


def runs(owner: User, chat: int) -> dict[str, int]:
    """Runs of all kinds; where each is, by name. One is in a chat."""
    WorkflowSetting.objects.create(name="certificate.renew", enabled=False, list_to_others=True)
    ran(owner, "month.close", {"month": "2025-09"}, "failed", days=31)
    found = {"run-failed": ran(owner, "month.close", {"month": "2025-10"}, "failed")}
    found["run-done"] = ran(owner, "mail.sum", {}, "completed", days=0.2)
    found["run-sleeps"] = ran(owner, "shelf.count", {}, "sleeping")
    found["run-asks"] = ran(owner, "backup.check", {}, "waiting_for_approval")
    ran(owner, "project.archive", {"name": "Station shop"}, "completed", conversation=chat)
    parcel: dict[str, JSON] = {"article": LONG, "pieces": 12, "shop": "Station", "labels": ["Fragile", "This side up"]}
    found["run-long"] = ran(owner, "parcel.send", parcel, "waiting_for_approval", days=0.1)
    found["run-waits"] = ran(owner, "parcel.send", {"article": "atlas", "pieces": 3}, "waiting_for_approval")
    found["run-sent"] = ran(owner, "parcel.send", {"article": "harbour-guide", "gift": True}, "waiting_for_approval")
    return found


def batch(owner: User) -> int:
    """A batch in which lines are done, failed and asleep until the night; its number."""
    articles = {"atlas": 12, "harbour-guide": 4, "calendar-2026": 900, "tide-tables": 30, "globe": 2, "postcards": 400}
    later = {f"stamps, series {number}": 60 + number for number in range(1, 4)}
    inputs: list[dict[str, JSON]] = [{"article": name, "pieces": count} for name, count in (articles | later).items()]
    started = start_batch(discovery.installed()["labels.print"], owner, inputs)
    begun = Prompt.objects.filter(pk__in=started.lines.filter(number__lte=len(articles)).values("prompt"))
    wait_for(lambda: begun.filter(state__in=["completed", "failed", "sleeping"]).count() == len(articles))
    return started.pk
