"""How much one person may ask: turns at a time, and tokens a day. A loop that nobody watches ends itself (C19)."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import F, Sum
from django.utils import timezone

from conversations.models import Prompt, Quota, Usage
from conversations.models.prompt import CLAIMABLE

DAY = timedelta(hours=24)


class OverQuota(Exception):
    """This person may not start a turn now; the message says why, and when or how it can go on."""


def check(user_id: int) -> None:
    """Raises OverQuota where the turns or the tokens of this person are used up."""
    most = limits(user_id).running_prompts
    if most and running(user_id) >= most:
        turns = "turn runs or waits" if most == 1 else f"{most} turns run or wait"
        raise OverQuota(f"{turns.capitalize()} for a worker already, which is your limit: let one end, or stop it.")
    if why := over_tokens(user_id):
        raise OverQuota(why)


def running(user_id: int) -> int:
    """How many turns of this person's conversations run or queue. One that waits for a decision costs nothing."""
    return Prompt.objects.filter(conversation__owner=user_id, state__in=CLAIMABLE).count()


def over_tokens(user_id: int) -> str | None:
    """Why no model may be asked for this person now; None where one may."""
    most = limits(user_id).tokens_a_day
    if most and (used := tokens_today(user_id)) >= most:
        return f"{used:,} tokens were used in the last 24 hours, of {most:,} that you have: try again later."
    return None


def tokens_today(user_id: int) -> int:
    """Tokens of the last 24 hours, read and written by models."""
    recent = Usage.objects.filter(user=user_id, time__gt=timezone.now() - DAY)
    return recent.aggregate(used=Sum(F("input_tokens") + F("output_tokens")))["used"] or 0


def limits(user_id: int) -> Quota:
    """This person's limits, the site's where they have none of their own; 0: no limit."""
    own = Quota.objects.filter(user=user_id).first() or Quota()
    running = settings.AGENTSITE_PROMPTS_AT_ONCE if own.running_prompts is None else own.running_prompts
    tokens = settings.AGENTSITE_TOKENS_A_DAY if own.tokens_a_day is None else own.tokens_a_day
    return Quota(running_prompts=running, tokens_a_day=tokens)
