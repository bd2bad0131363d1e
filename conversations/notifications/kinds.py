"""Kinds of notifications: their words and defaults, for every page and e-mail. Here, and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

from conversations.models import NoticeKind, State


@dataclass(frozen=True)
class Ways:
    """How somebody is told: by the browser while a page is open, by e-mail, and by their webhook, if they have one."""

    page: bool
    mail: bool
    hook: bool = True


@dataclass(frozen=True)
class KindRule:
    """A kind of notification: what people read when they choose, the heading, and how people are told by default."""

    choice: str
    heading: str
    default: Ways


KINDS: dict[NoticeKind, KindRule] = {
    NoticeKind.WAITS: KindRule("Something waits for my decision", "Waiting for you", Ways(page=True, mail=True)),
    NoticeKind.ENDED: KindRule("A turn ended while I was away", "Ended", Ways(page=True, mail=False)),
    NoticeKind.FAILED: KindRule("A turn failed while I was away", "Failed", Ways(page=True, mail=True)),
    NoticeKind.TRIGGER: KindRule(
        "A trigger or webhook of mine was switched off", "Switched off", Ways(page=True, mail=True)
    ),
}
KIND_OF = {State.COMPLETED: NoticeKind.ENDED, State.FAILED: NoticeKind.FAILED}
"""What the end of a turn is; of one that was stopped, nobody has to be told."""
