"""The admin's first page: pending approvals, failed turns, the state of the workers, recent decisions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from agents.engine.decisions import DECISIONS, PEOPLE_MAY
from agents.engine.outputs.kinds import TextOutput
from conversations.accounts.names import names_of
from conversations.admin.sidebar import waiting
from conversations.approvals.permissions import shown_to
from conversations.display.failure import UNEXPLAINED, failures_of
from conversations.display.faithful import first_line
from conversations.display.gate import Card, card
from conversations.models import Conversation, Output, Prompt, State, Verification
from conversations.verification.all import LATE, nightly_broke_off
from conversations.worker.health import Host, hosts, queue, waiting_since

ROWS_MOST = 6
"""Maximum number of rows in each list."""
FAILED_SINCE = timedelta(days=1)
LATE_SECONDS = 60
"""A turn that waits longer than this for a worker is late: a live worker takes it up within a second or two."""
TIRING = 60
"""Decisions of one person in an hour; with more, nobody reads each of them (C14)."""
PEOPLE_MOST = 5
"""Maximum number of people whose decisions are counted."""
DECIDED = frozenset(DECISIONS[decision].state for decision in PEOPLE_MAY)


@dataclass(frozen=True)
class Failed:
    """A failed turn: why it failed, and the page where this person can read it."""

    prompt: Prompt
    why: str
    address: str


@dataclass(frozen=True)
class Checked:
    """The last finished check of all ledgers. `since`: when there first was something to check.

    `broke_off`: whether a nightly check after it did not finish.
    """

    last: Verification | None
    since: datetime | None
    broke_off: bool

    @property
    def late(self) -> bool:
        """Whether a nightly check is overdue."""
        before = self.last.started_at if self.last else self.since
        return before is not None and timezone.now() - before > LATE

    @property
    def kind(self) -> str:
        """The state to show: ok, late or bad."""
        if self.last and self.last.count:
            return "bad"
        return "late" if self.late or self.broke_off else "ok"

    @property
    def problems(self) -> list[tuple[str, str]]:
        """The first problems, each with the URL of the steps it is about."""
        lines = self.last.problems.splitlines() if self.last else []
        return [(line, _steps_of(line)) for line in lines[:ROWS_MOST]]


def _steps_of(line: str) -> str:
    found = re.match(r"conversation (\d+), ", line)
    return f"{reverse('admin:conversations_step_changelist')}?conversation__id__exact={found[1]}" if found else ""


def checked() -> Checked:
    """Return the result of the last check."""
    last = Verification.objects.exclude(ended_at=None).order_by("-pk").first()
    first = Conversation.objects.order_by("pk").values_list("created_at", flat=True).first()
    return Checked(last, None if last else first, nightly_broke_off())


@dataclass(frozen=True)
class Work:
    """The workers: their hosts, how many turns wait for one, and since when the first of these has waited."""

    hosts: Sequence[Host]
    queue: int
    since: datetime | None

    @property
    def alive(self) -> list[Host]:
        """Hosts that take up turns."""
        return [host for host in self.hosts if host.alive]

    @property
    def late(self) -> bool:
        """Whether a turn has waited longer than a worker needs to notice it."""
        return self.since is not None and (timezone.now() - self.since).total_seconds() > LATE_SECONDS

    @property
    def kind(self) -> str:
        """The state to show: ok, late or bad."""
        if not self.alive:
            return "bad"
        return "late" if self.late or len(self.alive) < len(self.hosts) else "ok"


def start(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Return the page's context: the approvals that this person may see, and failures they may read."""
    pending, gates = (
        shown_to(request.user, rows).select_related("conversation__owner")
        for rows in (Output.objects.pending(), Output.objects.gates())
    )
    return context | {
        "title": "Start",
        "waits": waiting(request.user),
        "waiting": [card(row) for row in pending.order_by("asked_at", "pk")[:ROWS_MOST]],
        "failed": failed(request.user),
        "work": work(),
        "decided": decided(gates, request.user),
        "rates": rates(request.user) if request.user.has_perm("conversations.decide_approval") else [],
        "checked": checked() if request.user.has_perm("conversations.view_step") else None,
    }


def failed(user: User | AnonymousUser) -> list[Failed]:
    """Return the newest turns that failed within FAILED_SINCE: all for readers of the record, else their own."""
    reads = user.has_perm("conversations.view_prompt")
    found = Prompt.objects.all() if reads else Prompt.objects.visible_to(user)
    found = found.filter(state=State.FAILED, ended_at__gte=timezone.now() - FAILED_SINCE)
    prompts = list(found.select_related("conversation__owner").order_by("-ended_at", "-pk")[:ROWS_MOST])
    words = _last_words(prompts)
    told = {pk: failure.in_one_line for pk, failure in failures_of(prompts, user).items()}
    return [
        Failed(
            prompt,
            first_line(told.get(prompt.pk) or words.get(prompt.pk) or UNEXPLAINED, 400),
            reverse("admin:conversations_prompt_change", args=[prompt.pk])
            if reads
            else f"{prompt.conversation.get_absolute_url()}#t-{prompt.pk}",
        )
        for prompt in prompts
    ]


def _last_words(prompts: Sequence[Prompt]) -> dict[int, str]:
    """Return the site's message about each failure."""
    texts = Output.objects.of(*prompts).filter(type="text").order_by("position")
    entries = [(row.prompt_id, row.entry()) for row in texts]
    return {pk: e.text for pk, e in entries if isinstance(e, TextOutput) and e.role_hint == "system"}


def work() -> Work:
    """Return the state of the workers."""
    queued = queue()
    return Work(hosts(), len(queued), waiting_since(queued))


@dataclass(frozen=True)
class Rate:
    """How many decisions a person made in the last hour."""

    name: str
    decisions: int

    @property
    def tired(self) -> bool:
        """Whether that is more than anybody can read."""
        return self.decisions > TIRING


def rates(reader: User | AnonymousUser) -> list[Rate]:
    """Return the people who decided most in the last hour, at most PEOPLE_MOST; each gate's last decision counts."""
    since = timezone.now() - timedelta(hours=1)
    recent = Output.objects.gates().filter(decided_at__gt=since, decided_by__startswith="user:")
    counted = recent.order_by().values("decided_by").annotate(n=Count("pk")).order_by("-n", "decided_by")[:PEOPLE_MOST]
    found = {row["decided_by"]: row["n"] for row in counted}
    names = names_of(found, reader)
    return [Rate(names[actor], decisions) for actor, decisions in found.items()]


def decided(gates: QuerySet[Output], reader: User | AnonymousUser) -> list[Card]:
    """Return the newest decisions made by people."""
    rows = list(gates.filter(gate__in=DECIDED).order_by("-decided_at", "-pk")[:ROWS_MOST])
    names = names_of({actor for row in rows for actor in (row.decided_by, row.edited_by) if actor}, reader)
    return [card(row, names) for row in rows]
