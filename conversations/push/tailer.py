"""The tailer: the one thread of a web process that reads what happened, once for all clients."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any, TypeVar, cast

from django.db import Error, connections
from django.db.models import Exists, OuterRef, Q

from conversations.database.commits import ChangeNotice, Watch
from conversations.database.erasable_cache import empty_if_removed
from conversations.models import Conversation, Draft
from conversations.push.growth import Growth
from conversations.push.list_state import (
    LISTED,
    ListedConversation,
    Notices,
    annotate_listing,
    current_notices,
    owned_digests,
)
from conversations.push.listener import Listener
from conversations.push.topics import (
    ALL_SECONDS,
    ApprovalsTopic,
    ChangedConversation,
    ConversationTopic,
    EventsTopic,
    ListTopic,
    Look,
    PersonTopic,
    Topic,
)
from conversations.push.watch import open_watch

logger = logging.getLogger(__name__)
Followed = TypeVar("Followed", bound=Topic[Any])

WAIT_SECONDS = 0.2
"""How long to wait for a change before looking at topics that are new or that held back their last push."""
SWEEP_SECONDS = 1.0
"""Interval between two looks at all followed conversations and at the notices, whether anything was said to have
changed or not: a hint may be lost, and none says that the disk is full.
"""
STATES_MOST = 10_000
"""How many conversations the state is remembered of; any other is assumed to have changed."""
AGAIN_SECONDS = 1.0
"""Seconds between a failure of the database and the next attempt."""
_DRAFTS = Draft.objects.filter(conversation=OuterRef("pk"))


class Tailer:
    """Looks at the followed topics whenever something changed, in a thread of its own, and publishes their messages.

    `publish` is called in that thread with a topic and its message; with None if an update failed, so that the
    listeners read from the database what they would have been told.
    """

    def __init__(self, publish: Callable[[Topic[Any], Any | None], None]) -> None:
        self._publish = publish
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._topics: dict[object, Topic[Any]] = {}
        self._states: dict[int, tuple[object, ...]] = {}
        self._growth = Growth()
        self._notices: Notices = (0, False)
        self._moved = False
        self._swept_at = self._owned_at = self._counted_at = -math.inf

    def follow(self, topic: Followed, listener: Listener) -> Followed:
        """Add a listener to a topic: to this one, or to the one with the same key that is followed already."""
        with self._lock:
            held = cast("Followed", self._topics.setdefault(topic.key, topic))
            held.listeners.add(listener)
            return held

    def leave(self, topic: Topic[Any], listener: Listener) -> None:
        """Remove a listener from a topic. After the last one has gone the topic is not updated any more."""
        with self._lock:
            topic.listeners.remove(listener)
            if not topic.listeners:
                del self._topics[topic.key]

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="push-tailer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and wait for that: at most WAIT_SECONDS and the time of one look."""
        self._over.set()
        self._thread.join()

    def keep_running(self) -> None:
        """Start the thread anew if it died. All listeners then read from the database what they missed."""
        if not self._thread.is_alive():
            logger.error("the tailer died; starting it again")
            self.start()

    def _run(self) -> None:
        """Run until stopped. The database may go away and come back."""
        for topic in self._followed():
            self._publish(topic, None)  # what an earlier thread read last may not have been published
        with closing(open_watch()) as watch:
            while not self._over.is_set():
                self._growth = Growth()  # for the same reason
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

    def _followed(self) -> list[Topic[Any]]:
        with self._lock:
            return list(self._topics.values())

    def _follow(self, watch: Watch) -> None:
        while not self._over.is_set():
            change = watch.wait(WAIT_SECONDS) or ChangeNotice()
            topics = self._followed()
            look = self._read(topics, change)
            for topic in topics:
                self._update(topic, look)

    def _read(self, topics: list[Topic[Any]], change: ChangeNotice) -> Look:
        """Read what these topics need, and nothing that none of them needs."""
        if not topics:
            return Look({})
        sweep = change.everything or time.monotonic() - self._swept_at >= SWEEP_SECONDS
        found = _read_conversations(_wanted(topics, change, sweep=sweep))
        changed = frozenset(pk for pk, moved in found.items() if self._states.get(pk) != moved.state)
        self._remember(found)
        streamed = {topic.conversation for topic in topics if isinstance(topic, EventsTopic)}
        self._growth.keep(streamed)
        running = {pk for pk in streamed & found.keys() if found[pk].running}
        grown = self._growth.read(running) if running else {}
        lists = [topic for topic in topics if isinstance(topic, ListTopic)]
        owned = self._read_owned(lists, change)
        self._moved = self._moved or bool(change.conversations) or change.everything
        recount = False
        if sweep:
            self._swept_at = time.monotonic()
            empty_if_removed()
            if any(isinstance(topic, PersonTopic) for topic in topics):
                self._notices = current_notices()
            recount, self._moved = self._recounts(), False
        return Look(found, changed, change.everything, grown, self._notices, owned, recount)

    def _recounts(self) -> bool:
        """Whether to count approvals now: if anything has changed, and every ALL_SECONDS, as a hint may be lost."""
        due = self._moved or time.monotonic() - self._counted_at >= ALL_SECONDS
        if due:
            self._counted_at = time.monotonic()
        return due

    def _read_owned(self, lists: list[ListTopic], change: ChangeNotice) -> dict[int, str] | None:
        """Read the digests of these lists, if anything may have changed, and every ALL_SECONDS."""
        if not lists or not (change.everything or time.monotonic() - self._owned_at >= ALL_SECONDS):
            return None
        self._owned_at = time.monotonic()
        return owned_digests({each.person for each in lists})

    def _remember(self, found: Mapping[int, ChangedConversation]) -> None:
        """Remember the state of these conversations. The ones unchanged for the longest time are forgotten first."""
        for pk, moved in found.items():
            self._states.pop(pk, None)
            self._states[pk] = moved.state
        for pk in list(self._states)[:-STATES_MOST]:
            del self._states[pk]

    def _update(self, topic: Topic[Any], look: Look) -> None:
        try:
            message = topic.look(look)
        except Error:
            self._publish(topic, None)
            raise
        except Exception:
            logger.exception("could not update a topic", extra={"topic": topic.key})
            self._publish(topic, None)
            return
        if message is not None:
            self._publish(topic, message)


def _wanted(topics: list[Topic[Any]], change: ChangeNotice, *, sweep: bool) -> Q | None:
    """Return which conversations to read after this change, on a sweep all that are followed; None for none."""
    followed = [topic for topic in topics if isinstance(topic, ConversationTopic)]
    pages = {
        each.conversation for each in followed if sweep or each.at is None or each.conversation in change.conversations
    }
    people = {topic.person for topic in topics if isinstance(topic, PersonTopic)}
    wanted = Q(pk__in=pages) if pages else None
    if change.conversations and people:
        everybody = any(isinstance(topic, ApprovalsTopic) for topic in topics)
        theirs = Q(pk__in=change.conversations) & (Q() if everybody else Q(owner__in=people))
        wanted = wanted | theirs if wanted else theirs
    return wanted


def _read_conversations(wanted: Q | None) -> dict[int, ChangedConversation]:
    """Read these conversations in one query. Only a conversation with an active turn can have drafts."""
    if wanted is None:
        return {}
    running = Q(active_prompt__isnull=False)
    rows = annotate_listing(Conversation.objects.filter(wanted)).annotate(
        running=running, drafted=running & Exists(_DRAFTS)
    )
    columns = rows.values_list("pk", "owner", "seq", "seen_seq", "running", "drafted", *LISTED)
    return {
        pk: ChangedConversation(owner, seq, seen, running, drafted, ListedConversation(*listed))
        for pk, owner, seq, seen, running, drafted, *listed in columns
    }
