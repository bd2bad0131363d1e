"""Approval fatigue: how much each person decides, as people who decide too much stop reading (C14)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count
from django.utils import timezone

from conversations.accounts.names import names_of
from conversations.models import Output

HOUR = timedelta(hours=1)
MOST = 60
"""Decisions of one person in an hour; with more, nobody reads each of them."""
PEOPLE_MOST = 5


@dataclass(frozen=True)
class Rate:
    """How many decisions a person made in the last hour."""

    name: str
    decisions: int

    @property
    def tired(self) -> bool:
        """Whether that is more than anybody can read."""
        return self.decisions > MOST


def rates(reader: User | AnonymousUser) -> list[Rate]:
    """Return the people who decided most in the last hour, at most PEOPLE_MOST; each gate's last decision counts."""
    recent = Output.objects.gates().filter(decided_at__gt=timezone.now() - HOUR, decided_by__startswith="user:")
    counted = recent.order_by().values("decided_by").annotate(n=Count("pk")).order_by("-n", "decided_by")[:PEOPLE_MOST]
    found = [(row["decided_by"], row["n"]) for row in counted]
    names = names_of((actor for actor, _ in found), reader)
    return [Rate(names[actor], decisions) for actor, decisions in found]
