"""Sending e-mail in the background: a mail server may be slow, or unavailable for hours.

One e-mail lists all that is due for a person, and the next one comes AGENTSITE_MAIL_EVERY_SECONDS later at the
earliest. That they were told is recorded before it is sent, and taken back if the server did not accept it, so that it
is sent later. This is deliberate: people are notified at most once rather than twice. A process that is killed between
the two loses that one e-mail; the page, the list and the admin still show what waits.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from smtplib import SMTPRecipientsRefused, SMTPResponseException, SMTPSenderRefused
from time import monotonic
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage, get_connection
from django.db import Error, IntegrityError, connection, transaction
from django.utils import timezone

from conversations.database.sql import database_time
from conversations.models import Account, Notice, NoticeKind
from conversations.notifications.due import Due, due
from conversations.notifications.letters import digest

logger = logging.getLogger(__name__)

AT_ONCE = 50
"""E-mails sent in one round; the next round follows in seconds."""
TRIES = 3
"""Attempts to send an e-mail that the server refuses permanently; after these it counts as sent."""
FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 15.0, 300.0
"""Wait before the first retry, doubled with each failure, and its maximum."""


class Backoff:
    """The time to wait before something that failed is tried again. `refusals`: permanent ones since it last worked."""

    def __init__(self) -> None:
        self.seconds, self._until = 0.0, 0.0  # on the monotonic clock
        self.refusals = 0

    @property
    def over(self) -> bool:
        """Whether it may be tried again."""
        return monotonic() >= self._until

    def begin(self) -> None:
        """Record a failure: wait twice as long as before."""
        self.seconds = min(self.seconds * 2 or FIRST_REST_SECONDS, LONGEST_REST_SECONDS)
        self._until = monotonic() + self.seconds


class Notifier:
    """Sends people e-mails of what waits for them and of what has happened."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._rest = Backoff()  # of the server
        self._rests: defaultdict[int, Backoff] = defaultdict(Backoff)  # of people whose e-mail failed, by user id

    def look(self) -> None:
        """Start a round in its own thread, unless one is running or the server needs a pause. Returns at once."""
        if self._rest.over and not (self._thread and self._thread.is_alive()):
            self._thread = threading.Thread(target=self._round, name="mail", daemon=True)
            self._thread.start()

    def send_due(self) -> int:
        """Send everybody what is due, at most AT_ONCE people; return how many e-mails were sent.

        Raises OSError if the server does not answer; nobody counts as notified then.
        """
        resting = [person for person, rest in self._rests.items() if not rest.over]
        found = due(but=resting)[:AT_ONCE]
        if not found:
            return 0
        with get_connection() as server:
            return sum(self._notify(person, told, server) for person, told in found)

    def _round(self) -> None:
        try:
            self.send_due()
            self._rest = Backoff()
        except OSError as error:
            self._rest.begin()
            logger.warning("the mail server does not answer (%s); trying again in %d s", error, self._rest.seconds)
        except Error:
            logger.warning("the database does not answer; nobody is notified for now", exc_info=True)
        except Exception:
            self._rest.begin()
            logger.exception("e-mails could not be sent; trying again in %d s", self._rest.seconds)
        finally:
            connection.close()

    def _notify(self, person: User, told: Due, server: Any) -> bool:
        """Notify one person. Raises OSError if the server cannot be reached any more."""
        claim = _claim(person, told)
        if claim is None:
            return False
        try:
            letter = digest(person, told)
            if letter is None:
                claim.free_person()
                return False
            server.send_messages([letter])
        except Exception as error:  # noqa: BLE001 - one bad address must not keep the others from being notified
            self._failed(person.pk, claim, error)
            server.close()  # whatever state the connection is in
            server.open()
            return False
        self._rests.pop(person.pk, None)
        return True

    def _failed(self, person: int, claim: _Claim, error: Exception) -> None:
        """Take the claim back and skip this person for a while; give up after TRIES permanent refusals."""
        rest = self._rests[person]
        rest.refusals += is_permanent(error)
        claim.free_person()
        if rest.refusals >= TRIES:
            del self._rests[person]
            logger.error("an e-mail to user %d was refused %d times (%s): giving up", person, TRIES, error)
            return
        claim.take_back()
        rest.begin()
        ours = not isinstance(error, OSError)  # mail servers' errors all are
        retry = "an e-mail to user %d was not accepted (%s); trying again in %d s"
        logger.warning(retry, person, error, rest.seconds, exc_info=ours)


def is_permanent(error: Exception) -> bool:
    """Whether a mail server refused this address permanently. Any other error may pass."""
    match error:
        case SMTPRecipientsRefused(recipients=answers):
            return all(code >= 500 for code, _text in answers.values())
        case SMTPSenderRefused():  # the sender is the site's address: nothing is wrong with the person's
            return False
        case SMTPResponseException(smtp_code=code):
            return int(code) >= 500
    return False


@dataclass(frozen=True)
class _Claim:
    """The right to send one e-mail to a person: what was recorded for it, and when the one before it was sent."""

    person: int
    waits: Sequence[Notice]
    others: Sequence[int]
    mailed_at: float

    def free_person(self) -> None:
        """Let the next e-mail come at once: none was sent."""
        Account.objects.filter(user=self.person).update(mailed_at=self.mailed_at)

    def take_back(self) -> None:
        """Record that nothing of this was told."""
        Notice.objects.filter(pk__in=[notice.pk for notice in self.waits]).delete()
        Notice.objects.filter(pk__in=self.others).update(mailed_at=None)


def _claim(person: User, told: Due) -> _Claim | None:
    """Record that this person is told of all this, in one e-mail; None if another process does it."""
    of_waits: dict[str, Any] = {"user": person, "kind": NoticeKind.WAITS, "mail": True, "mailed_at": timezone.now()}
    waits = [Notice(prompt=wait.prompt, seq=wait.seq, **of_waits) for wait in told.waits]
    ids = [notice.pk for notice in told.notices]
    try:
        with transaction.atomic():
            Account.objects.get_or_create(user=person)
            before = Account.objects.select_for_update().get(user=person).mailed_at
            if before > (now := database_time()) - settings.AGENTSITE_MAIL_EVERY_SECONDS:
                return None
            unsent = Notice.objects.filter(pk__in=ids, mailed_at=None)
            if unsent.update(mailed_at=timezone.now()) != len(ids):
                transaction.set_rollback(True)  # another process was faster, and the next round finds what it left
                return None
            Account.objects.filter(user=person).update(mailed_at=now)
            return _Claim(person.pk, Notice.objects.bulk_create(waits), ids, before)
    except IntegrityError:
        return None


def send_soon(letter: EmailMessage) -> None:
    """Send an e-mail once, in its own thread: neither the response nor its timing reveals whether one was sent."""
    threading.Thread(target=_send, args=[letter], name="mail", daemon=True).start()


def _send(letter: EmailMessage) -> None:
    try:
        letter.send()
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the server or the address
        logger.warning("an e-mail was not accepted: %s", error)  # neither its recipient nor its text
