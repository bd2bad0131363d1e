"""The inbox: the approvals that a person sees, filtered, in pages by keyset.

Those that wait are in the order in which they expire, so that the next to expire comes first; decided ones begin with
the newest decision. A page takes the same number of queries, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import F, Max, Q, QuerySet

from agents import discovery
from agents.engine.paths import HUMAN
from agents.engine.root import WORKFLOW
from agents.engine.tools.tool import Risk
from conversations.approvals.permissions import allowed_to, shown_to
from conversations.database.ids import row_id
from conversations.display.call import title_of
from conversations.display.search import all_words, contains, in_output, words_of
from conversations.models import Conversation, Output

PAGE = 30
"""Approvals on a page of the list."""
WAITING, DECIDED = "waiting", "decided"
ALL, MINE, OTHERS, ELSE = "", "mine", "others", "else"
"""Whose calls are shown: all that wait for the person, their own of these, those of others; or those that they see, and
that wait for somebody else.
"""


@dataclass(frozen=True)
class InboxFilter:
    """Which approvals are asked for; an empty field asks for all.

    `show` is WAITING or DECIDED. `whose`: see ALL. `tool` is the name of one, `risk` one of `Risk`, `person` the id of
    the owner of the conversation, `workflow` the name of one. `search`: words that all occur in one approval: in its
    reason, its input, its tool, or the title or owner of its conversation.
    """

    show: str = WAITING
    whose: str = ALL
    tool: str = ""
    risk: str = ""
    person: int | None = None
    conversation: int | None = None
    workflow: str = ""
    search: str = ""

    @classmethod
    def given(cls, asked: Mapping[str, str]) -> InboxFilter:
        """Return the filter that an address names. A choice that does not exist is none."""
        whose, risk = asked.get("whose", ""), asked.get("risk", "")
        decided = asked.get("show") == DECIDED
        return cls(
            DECIDED if decided else WAITING,
            whose if whose in (MINE, OTHERS) or (whose == ELSE and not decided) else ALL,
            asked.get("tool", "").replace("\0", ""),
            risk if risk in tuple(Risk) else "",
            row_id(asked.get("person", "")),
            row_id(asked.get("conversation", "")),
            asked.get("workflow", "").replace("\0", ""),
            asked.get("q", "").strip(),
        )

    @property
    def decided(self) -> bool:
        """Whether it asks for what was decided."""
        return self.show == DECIDED

    @property
    def chosen(self) -> dict[str, str]:
        """What was chosen besides `show`, by the names that addresses have for it."""
        told = {
            "whose": self.whose,
            "tool": self.tool,
            "risk": self.risk,
            "person": self.person,
            "conversation": self.conversation,
            "workflow": self.workflow,
            "q": self.search,
        }
        return {name: str(value) for name, value in told.items() if value not in ("", None)}

    @property
    def narrowed(self) -> bool:
        """Whether something was chosen besides a search."""
        return bool(self.chosen.keys() - {"q"})

    def query(self, after: int | None = None, **more: str) -> str:
        """Return the query of an address with this filter, of the page after this approval."""
        named = {"show": DECIDED if self.decided else "", **self.chosen, "after": str(after or ""), **more}
        return urlencode({name: value for name, value in named.items() if value})


def found(user: User, asked: InboxFilter) -> QuerySet[Output]:
    """Return the approvals that this filter lets through, of those that the user may see, in no order."""
    rows = shown_to(
        user, Output.objects.filter(decided_at__isnull=False) if asked.decided else Output.objects.pending()
    )
    if not asked.decided:
        allowed = allowed_to(user, rows)
        rows = rows.exclude(pk__in=allowed.values("pk")) if asked.whose == ELSE else allowed
    own = Q(conversation__owner=user)
    if asked.whose in (MINE, OTHERS):
        rows = rows.filter(own if asked.whose == MINE else ~own)
    if asked.tool:
        rows = rows.filter(tool=asked.tool)
    if asked.risk:
        rows = rows.filter(risk__in=["", Risk.READ] if asked.risk == Risk.READ else [asked.risk])
    if asked.person is not None:
        rows = rows.filter(conversation__owner=asked.person)
    if asked.conversation is not None:
        rows = rows.filter(conversation=asked.conversation)
    if asked.workflow:
        rows = rows.filter(prompt__policy=f"{WORKFLOW}{asked.workflow}")
    for word in words_of(asked.search):
        rows = rows.filter(all_words([word], _told) | in_output([word], "input", "parent"))
    return rows.order_by()


def _told(word: str) -> Q:
    """Match a word in whatever people read of an approval in the list, besides its input."""
    titled = [tool.name for tool in discovery.installed().tools if word.casefold() in tool.title.casefold()]
    of_owner = ("conversation__owner__username", "conversation__owner__first_name")
    columns = ("reason", "tool", "conversation__title", *of_owner)
    return reduce(or_, (contains(column, word) for column in columns)) | Q(tool__in=titled)


@dataclass(frozen=True)
class InboxPage:
    """A page of the list. `more`: others follow. `after`: the approval after which it begins; None for the first."""

    rows: list[Output]
    more: bool
    after: int | None


def page(
    user: User, asked: InboxFilter, after: int | None = None, most: int = PAGE, *, key: Q | None = None
) -> InboxPage:
    """Return the approvals after this one, whether or not it is still among them; the first, if there is none such.

    `key`: see `key_after`, if it was asked before.
    """
    rows = found(user, asked).select_related("conversation__owner", "prompt")
    time = F("decided_at").desc() if asked.decided else F("expires_at").asc(nulls_last=True)
    rows = rows.order_by(time, "-pk" if asked.decided else "pk")
    key = key or key_after(user, asked, after)
    listed = list((rows.filter(key) if key else rows)[: most + 1])
    if not listed and key:
        return page(user, asked, most=most)  # what was there has been decided
    return InboxPage(listed[:most], len(listed) > most, after if key else None)


def key_after(user: User, asked: InboxFilter, after: int | None) -> Q | None:
    """Return what comes after this approval as it is now; None if the person sees no such approval."""
    seen = shown_to(user, Output.objects.gates().filter(pk=after)) if after is not None else Output.objects.none()
    last: tuple[datetime | None, datetime | None] | None = seen.values_list("expires_at", "decided_at").first()
    if last is None:
        return None
    expires, decided = last
    if asked.decided:
        return Q(decided_at__lt=decided) | Q(decided_at=decided, pk__lt=after) if decided else None
    if expires is None:
        return Q(expires_at=None, pk__gt=after)
    return Q(expires_at__gt=expires) | Q(expires_at=expires, pk__gt=after) | Q(expires_at=None)


@dataclass(frozen=True)
class Choices:
    """What the filters offer: the tools, people, conversations and workflows among the approvals that are shown.

    Tools and workflows are names with titles.
    """

    tools: list[tuple[str, str]]
    people: list[User]
    conversations: list[Conversation]
    workflows: list[tuple[str, str]]


QUESTION = "Questions of programs"
RECENT, CONVERSATIONS_MOST = 2_000, 100
"""Of how many decided approvals, and of how many conversations, the filters offer something to choose."""


def choices(user: User, asked: InboxFilter) -> Choices:
    """Return what can be chosen, whatever has been chosen already; of decided approvals only among the RECENT ones."""
    rows = found(user, InboxFilter(asked.show, ELSE if asked.whose == ELSE else ALL))
    if asked.decided:
        rows = Output.objects.filter(pk__in=list(rows.order_by("-decided_at").values_list("pk", flat=True)[:RECENT]))
    told: list[Any] = list(rows.order_by().values_list("tool", "conversation__owner", "prompt__policy").distinct())
    latest = rows.values("conversation").annotate(at=Max("conversation__updated_at")).order_by("-at")
    ids = [row["conversation"] for row in latest[:CONVERSATIONS_MOST]]
    if asked.conversation is not None and rows.filter(conversation=asked.conversation).exists():
        ids.append(asked.conversation)
    # By their ids: of a subquery's, PostgreSQL would sort all conversations first.
    listed = Conversation.objects.filter(pk__in=ids).order_by("-updated_at")
    people = User.objects.filter(pk__in={owner for _, owner, _ in told}).order_by("first_name", "username")
    tools = {(QUESTION if tool == HUMAN else title_of(tool), tool) for tool, _, _ in told if tool}
    workflows = {(title_of(name), name.removeprefix(WORKFLOW)) for _, _, name in told if name.startswith(WORKFLOW)}
    return Choices(_by_title(tools), list(people), list(listed), _by_title(workflows))


def _by_title(titled: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return pairs of a name and its title, in the order of the titles."""
    return [(name, title) for title, name in sorted(titled)]
