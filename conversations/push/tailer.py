"""The tailer: the one thread of a web process that reads what happened, once for all clients."""

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
    annotate_listing,
    count_waiting,
    current_notices,
    owned_digests,
)
from conversations.push.topics import (
    ApprovalsTopic,
    Body,
    ChangedConversation,
    ConversationTopic,
    EventsTopic,
    ListTopic,
    Look,
    PersonTopic,
    Topic,
)
from conversations.push.watch import ChangeNotice, Watch, open_watch

logger = logging.getLogger(__name__)
Followed = TypeVar("Followed", bound=Topic)

WAIT_SECONDS = 0.2
"""How long to wait for a change before looking at topics that are new or that held back their last push."""
SEQS_MOST = 10_000
"""How many conversations the last seq is remembered of; any other is assumed to have new steps."""
NOTICES_SECONDS = 1.0
"""Interval between reads of the notices: no commit says that the disk is full. And between counts of the approvals,
because a busy site has commits all the time.
"""
AGAIN_SECONDS = 1.0
"""Seconds between a failure of the database and the next attempt."""
_DRAFTS = Draft.objects.filter(conversation=OuterRef("pk"))


class Tailer(threading.Thread):
    """Updates the followed topics whenever something changed, and publishes their messages.

    `publish` is called in this thread with a topic's group, the number of the message and its body. If an update fails,
    the topic skips a number: its followers see that something is missing, and catch up.
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
        self._notices_read_at = -math.inf

    def follow(self, topic: Followed) -> Followed:
        """Follow a topic: this one, or the one of the same group that is followed already."""
        with self._lock:
            held = cast("Followed", self._topics.setdefault(topic.group, topic))
            held.followers += 1
            return held

    def begin(self, topic: ConversationTopic, seq: int) -> int:
        """Begin a topic after the step `seq`, unless it has begun. Returns the step after which it begins."""
        with self._lock:
            self._new.add(topic.conversation)
            return topic.begin(seq)

    def leave(self, topic: Topic) -> None:
        """Stop following a topic. After its last follower has gone it is not updated any more."""
        with self._lock:
            topic.followers -= 1
            if not topic.followers:
                del self._topics[topic.group]

    def stop(self) -> None:
        """End the thread, within WAIT_SECONDS."""
        self._over.set()

    def run(self) -> None:
        """Run until stopped. The database may go away and come back."""
        with closing(open_watch()) as watch:
            while not self._over.is_set():
                self._growth = Growth()  # what was read last may not have been published
                try:
                    self._follow(watch)
                except Error:
                    logger.warning("the database does not answer the tailer; trying again", exc_info=True)
                    self._pause(watch)
                except Exception:
                    logger.exception("the tailer failed; trying again")
                    self._pause(watch)
                finally:
                    with suppress(Error):  # a broken connection may raise
                        connections.close_all()

    def _pause(self, watch: Watch) -> None:
        watch.close()  # its next notice is that everything may have changed
        self._over.wait(AGAIN_SECONDS)

    def _follow(self, watch: Watch) -> None:
        while not self._over.is_set():
            change = watch.wait(WAIT_SECONDS) or ChangeNotice()
            with self._lock:
                topics = [topic for topic in self._topics.values() if topic.begun]
                new, self._new = frozenset(self._new), set()
            look = self._read(topics, change, new)
            for topic in topics:
                self._update(topic, look)

    def _read(self, topics: list[Topic], change: ChangeNotice, new: frozenset[int]) -> Look:
        """Read what these topics need, and nothing that none of them needs."""
        followed = {topic.conversation for topic in topics if isinstance(topic, ConversationTopic)}
        streamed = {topic.conversation for topic in topics if isinstance(topic, EventsTopic)}
        self._growth.keep(streamed)
        people = {topic.person for topic in topics if isinstance(topic, PersonTopic)}
        approvals = any(isinstance(topic, ApprovalsTopic) for topic in topics)
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
        rows = annotate_listing(Conversation.objects.filter(wanted)).annotate(drafted=Exists(_DRAFTS))
        columns = rows.values_list("pk", "owner", "seq", "drafted", *LISTED)
        found = {
            pk: ChangedConversation(owner, seq, drafted, ListedConversation(*said))
            for pk, owner, seq, drafted, *said in columns
        }
        appended = frozenset(pk for pk, moved in found.items() if self._seqs.get(pk) != moved.seq)
        self._remember(found)
        streamed &= found.keys()
        grown = self._growth.read(streamed) if streamed else {}
        lists = [topic for topic in topics if isinstance(topic, ListTopic)]
        owned = owned_digests({each.person for each in lists}) if change.everything and lists else {}
        waiting = self._read_notices(change, lists) if people else None
        return Look(found, appended, change.everything, grown, change.relisted, self._notices, owned, waiting)

    def _read_notices(self, change: ChangeNotice, lists: Iterable[ListTopic]) -> int | None:
        """Read the notices once for all users: if anything may have changed, and every NOTICES_SECONDS.

        Returns how many approvals wait; None if that was not read, or if nobody follows it.
        """
        if not change.everything and time.monotonic() - self._notices_read_at < NOTICES_SECONDS:
            return None
        self._notices, self._notices_read_at = current_notices(), time.monotonic()
        return count_waiting() if any(each.counts for each in lists) else None

    def _remember(self, found: Mapping[int, ChangedConversation]) -> None:
        """Remember the seq of these conversations. The ones unchanged for the longest time are forgotten first."""
        for pk, moved in found.items():
            self._seqs.pop(pk, None)
            self._seqs[pk] = moved.seq
        for pk in list(self._seqs)[:-SEQS_MOST]:
            del self._seqs[pk]

    def _update(self, topic: Topic, look: Look) -> None:
        try:
            body = topic.look(look)
        except Error:
            topic.number += 1
            raise
        except Exception:
            logger.exception("could not update a topic", extra={"topic": topic.group})
            topic.number += 1
            return
        if body is not None:
            topic.number += 1
            self._publish(topic.group, topic.number, body)
