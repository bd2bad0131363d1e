"""Quotas: how many turns at a time, tokens a day and bytes one person may use. They end a loop nobody watches (C19)."""

from __future__ import annotations

from django.conf import settings

from conversations.models import Prompt, Quota, State
from conversations.models.prompt import CLAIMABLE
from conversations.usage.totals import DAY, of_person

UNATTENDED_MOST = 5
"""How many turns that the system starts may be queued in one conversation."""

SETTINGS = {
    "running_prompts": "AGENTSITE_PROMPTS_AT_ONCE",
    "tokens_a_day": "AGENTSITE_TOKENS_A_DAY",
    "requests_a_minute": "AGENTSITE_PASSTHROUGH_REQUESTS_A_MINUTE",
    "requests_a_day": "AGENTSITE_PASSTHROUGH_REQUESTS_A_DAY",
    "storage_mb": "AGENTSITE_STORAGE_MB",
}
"""The limits of a person, with the settings that have the site's."""


class OverQuota(Exception):
    """This person may not start a turn now. The message says why, and what to do."""


def check(user_id: int, together: str = "") -> None:
    """Raise OverQuota if this person has used up their turns or tokens.

    `together`: what the turn to be started is a part of. All of its turns count as one, so they need only one's room.
    """
    own = limits(user_id)
    most = own.running_prompts
    if most and running(user_id, beside=together) >= most:
        turns = "1 turn is" if most == 1 else f"{most} turns are"
        raise OverQuota(f"{turns} already running or queued, which is the limit. Wait for one to end, or stop one.")
    if own.tokens_a_day and (why := over(tokens_today(user_id), own.tokens_a_day)):
        raise OverQuota(why)


def check_queue(conversation: int) -> None:
    """Raise OverQuota if the system has started as many turns of this conversation as may be queued."""
    queued = Prompt.objects.unattended().filter(conversation=conversation, state=State.QUEUED)
    if queued.count() >= UNATTENDED_MOST:
        raise OverQuota(
            f"{UNATTENDED_MOST} turns without a message are already queued in this conversation, which is the limit."
            " Nothing was started: try again when one of them has begun."
        )


def running(user_id: int, beside: str = "") -> int:
    """Return how many of this person's turns are running or queued. A turn that waits for a decision does not count,
    nor one that the system started: nobody can be told to wait for what they did not ask for.

    Turns that were started `together` count as one; those `beside` which others are counted do not count at all.
    """
    found = Prompt.objects.attended().filter(conversation__owner=user_id, state__in=CLAIMABLE)
    parts = list(found.values_list("together", flat=True))
    return parts.count("") + len(set(parts) - {"", beside})


def tokens_today(user_id: int) -> int:
    """Return the tokens that this person used within the last 24 hours, in conversations and under /v1."""
    return of_person(user_id, DAY).spent.total_tokens


def over(used: int, most: int) -> str | None:
    """Return why no model may be asked after so many tokens; None if it may."""
    if used < most:
        return None
    return f"{used:,} tokens were used in the last 24 hours, and the limit is {most:,}. Try again later."


def limits(user_id: int) -> Quota:
    """Return this person's limits; those of the site where they have none of their own. 0 means no limit."""
    own = Quota.objects.filter(user=user_id).first() or Quota()
    return Quota(
        **{
            name: getattr(settings, of_site) if getattr(own, name) is None else getattr(own, name)
            for name, of_site in SETTINGS.items()
        }
    )
