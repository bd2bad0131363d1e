"""The one thread of a web process that reads what happened, once, for all who follow it here."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from typing import TypeVar, cast

from django.db import Error, connections
from django.db.models import Exists, OuterRef, Q

from conversations.models import Conversation, Draft
from conversations.push.growth import Growth
from conversations.push.list_state import (
    LISTED,
    ListedConversation,
    Notices,
    listed,
    notices_now,
    owned_by,
    waiting_now,
)
from conversations.push.topics import (
    Body,
    Events,
    Look,
    Moved,
    OfConversation,
    OfPerson,
    PersonalApprovals,
    PersonalList,
    Topic,
)
from conversations.push.watch import ChangeNotice, Watch, open_watch

logger = logging.getLogger(__name__)
Followed = TypeVar("Followed", bound=Topic)

WAIT_SECONDS = 0.2
"""How long it waits for a change before it looks at topics that are new, or held back their last push."""
SEQS_MOST = 10_000
"""Conversations of which it is remembered where they stood; another one is taken to have new steps."""
NOTICES_SECONDS = 1.0
"""Between two looks at what all must know of the site: that the disk is full no commit says. And between two counts of
the approvals, of which a busy site has commits all the time."""
AGAIN_SECONDS = 1.0
"""Between a failure of the database and the next attempt."""
_DRAFTS = Draft.objects.filter(conversation=OuterRef("pk"))


class Tailer(threading.Thread):
    """Looks at the topics that are followed whenever something changed, and publishes what they make of it.

    `publish` is called in this thread with a topic's group, the message's number and its body. A topic whose look
    failed skips a number: who follows it sees that something is missing, and catches up.
    """

    def __init__(self, publish: Callable[[str, int, Body], None]) -> None:
        super().__init__(name="push-tailer", daemon=True)
        self._publish = publish
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._topics: dict[str, Topic] = {}
        self._new: set[int] = set()
        self._seqs: dict[int, int] = {}
        self._growth = Growth()
        self._notices: Notices = (0, False)
        self._noticed_at = -math.inf

    def follow(self, topic: Followed) -> Followed:
        """Hold a topic: this one, or the one of its group that is followed already."""
        with self._lock:
            held = cast("Followed", self._topics.setdefault(topic.group, topic))
            held.followers += 1
            return held

    def begin(self, topic: OfConversation, seq: int) -> int:
        """Tell of this topic from the step after `seq` on, unless it is told of already. Returns after which it is."""
        with self._lock:
            self._new.add(topic.conversation)
            return topic.begin(seq)

    def leave(self, topic: Topic) -> None:
        """Let go of a topic; with the last who does, nobody looks at it any more."""
        with self._lock:
            topic.followers -= 1
            if not topic.followers:
                del self._topics[topic.group]

    def stop(self) -> None:
        """End the thread, within WAIT_SECONDS."""
        self._over.set()

    def run(self) -> None:
        """Look until told to stop. The database may go and come back."""
        with closing(open_watch()) as watch:
            while not self._over.is_set():
                self._growth = Growth()  # what was read last may not have been told
                try:
                    self._follow(watch)
                except Error:
                    logger.warning("the database does not answer the tailer; trying again", exc_info=True)
                    self._pause(watch)
                except Exception:
                    logger.exception("the tailer failed; trying again")
                    self._pause(watch)
                finally:
                    with suppress(Error):  # as a broken one may raise
                        connections.close_all()

    def _pause(self, watch: Watch) -> None:
        watch.close()  # its next answer is that everything may have changed
        self._over.wait(AGAIN_SECONDS)

    def _follow(self, watch: Watch) -> None:
        while not self._over.is_set():
            change = watch.wait(WAIT_SECONDS) or ChangeNotice()
            with self._lock:
                topics = [topic for topic in self._topics.values() if topic.begun]
                new, self._new = frozenset(self._new), set()
            look = self._looked(topics, change, new)
            for topic in topics:
                self._show(topic, look)

    def _looked(self, topics: list[Topic], change: ChangeNotice, new: frozenset[int]) -> Look:
        """What there is to see for these topics. Asks for nothing that none of them follows."""
        followed = {topic.conversation for topic in topics if isinstance(topic, OfConversation)}
        told = {topic.conversation for topic in topics if isinstance(topic, Events)}
        self._growth.keep(told)
        people = {topic.person for topic in topics if isinstance(topic, OfPerson)}
        approvals = any(isinstance(topic, PersonalApprovals) for topic in topics)
        of_people = Q() if approvals else Q(owner__in=people)
        if change.everything:
            wanted = Q(pk__in=followed)
        else:
            relisted = {pk for pk, _ in change.relisted}
            wanted = Q(pk__in=followed & (change.conversations | new | relisted))
            if people and change.conversations:
                wanted |= Q(pk__in=change.conversations) & of_people
        if not (followed or people):
            return Look({}, everything=change.everything, relisted=change.relisted)
        rows = listed(Conversation.objects.filter(wanted)).annotate(drafted=Exists(_DRAFTS))
        columns = rows.values_list("pk", "owner", "seq", "drafted", *LISTED)
        found = {
            pk: Moved(owner, seq, drafted, ListedConversation(*said)) for pk, owner, seq, drafted, *said in columns
        }
        appended = frozenset(pk for pk, moved in found.items() if self._seqs.get(pk) != moved.seq)
        self._remember(found)
        told &= found.keys()
        grown = self._growth.read(told) if told else {}
        lists = [topic for topic in topics if isinstance(topic, PersonalList)]
        owned = owned_by({each.person for each in lists}) if change.everything and lists else {}
        waiting = self._noticed(change, lists) if people else None
        return Look(found, appended, change.everything, grown, change.relisted, self._notices, owned, waiting)

    def _noticed(self, change: ChangeNotice, lists: Iterable[PersonalList]) -> int | None:
        """See what all must know, once for all people: where anything may have changed, and now and then.

        Returns how many approvals wait; None where it was not looked at, or nobody follows it.
        """
        if not change.everything and time.monotonic() - self._noticed_at < NOTICES_SECONDS:
            return None
        self._notices, self._noticed_at = notices_now(), time.monotonic()
        return waiting_now() if any(each.counts for each in lists) else None

    def _remember(self, found: Mapping[int, Moved]) -> None:
        """Where these stand; those that did not move for the longest time are forgotten first."""
        for pk, moved in found.items():
            self._seqs.pop(pk, None)
            self._seqs[pk] = moved.seq
        for pk in list(self._seqs)[:-SEQS_MOST]:
            del self._seqs[pk]

    def _show(self, topic: Topic, look: Look) -> None:
        try:
            body = topic.look(look)
        except Error:
            topic.number += 1
            raise
        except Exception:
            logger.exception("what changed cannot be shown", extra={"topic": topic.group})
            topic.number += 1
            return
        if body is not None:
            topic.number += 1
            self._publish(topic.group, topic.number, body)
