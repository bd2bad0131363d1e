"""Sending e-mail, where nobody waits for it: a mail server may be slow or away for hours.

That a person was told is recorded before the mail is sent, and taken back where the server did not take it, so that it
is sent later. Decided so: people are told at most once rather than twice. A process that is killed between the record
and the sending loses that one mail; the page, the list and the admin show what waits all the same.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, defaultdict
from smtplib import SMTPRecipientsRefused, SMTPResponseException, SMTPSenderRefused
from time import monotonic
from typing import Any

from django.core.mail import EmailMessage, get_connection
from django.db import Error, IntegrityError, connection, transaction

from conversations.models import Notice
from conversations.notifications.letters import waiting
from conversations.notifications.waits import PersonWaits, tellings

logger = logging.getLogger(__name__)

AT_ONCE = 50
"""Mails of one round; the next one follows in seconds."""
TRIES = 3
"""Times that a mail to one person is tried where the server says that it never will; then it counts as sent."""
FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 15.0, 300.0
"""Before what did not work is tried again; doubled each time."""


class Rest:
    """The time until something that did not work is tried again."""

    def __init__(self) -> None:
        self.seconds, self._until = 0.0, 0.0  # on the monotonic clock

    @property
    def over(self) -> bool:
        """Whether it can be tried again."""
        return monotonic() >= self._until

    def begin(self) -> None:
        """It did not work: rest, twice as long as before."""
        self.seconds = min(self.seconds * 2 or FIRST_REST_SECONDS, LONGEST_REST_SECONDS)
        self._until = monotonic() + self.seconds


class Teller:
    """Tells people of turns that wait for them."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._rest = Rest()  # of the server
        self._rests: defaultdict[int, Rest] = defaultdict(Rest)  # of people whose mail it did not take, by key ...
        self._refused: Counter[int] = Counter()  # ... and how often in a row it said that it never will

    def look(self) -> None:
        """Begin a round in a thread of its own, unless one runs or the server rests. Returns at once."""
        if self._rest.over and not (self._thread and self._thread.is_alive()):
            self._thread = threading.Thread(target=self._round, name="mail", daemon=True)
            self._thread.start()

    def tell_waiting(self) -> int:
        """Tell whoever is to be told, AT_ONCE at most; returns how many mails went out.

        Raises OSError where the server does not answer: nobody counts as told then.
        """
        resting = [person for person, rest in self._rests.items() if not rest.over]
        due = tellings(but=resting)[:AT_ONCE]
        if not due:
            return 0
        with get_connection() as server:
            return sum(self._tell(telling, server) for telling in due)

    def _round(self) -> None:
        try:
            self.tell_waiting()
            self._rest = Rest()
        except OSError as error:
            self._rest.begin()
            logger.warning("the mail server does not answer (%s); trying again in %d s", error, self._rest.seconds)
        except Error:
            logger.warning("the database does not answer; nobody is told for now", exc_info=True)
        except Exception:
            self._rest.begin()
            logger.exception("nobody can be told that a turn waits; trying again in %d s", self._rest.seconds)
        finally:
            connection.close()

    def _tell(self, telling: PersonWaits, server: Any) -> bool:
        """Tell one person. Raises OSError where the server went away."""
        notices = _claim(telling)
        if not notices:
            return False
        try:
            letter = waiting(telling)
            if letter is None:
                return False
            server.send_messages([letter])
        except Exception as error:  # noqa: BLE001 - one address that cannot be written to must not keep the others
            self._not_taken(telling.person.pk, notices, error)
            server.close()  # in whatever state it is
            server.open()
            return False
        self._forget(telling.person.pk)
        return True

    def _not_taken(self, person: int, notices: list[Notice], error: Exception) -> None:
        """Take back that a person was told, and leave them in peace for a while; give up what never will be taken."""
        self._refused[person] += is_permanent(error)
        if self._refused[person] >= TRIES:
            self._forget(person)
            logger.error("a mail to user %d was refused %d times (%s): given up", person, TRIES, error)
            return
        Notice.objects.filter(pk__in=[notice.pk for notice in notices]).delete()
        self._rests[person].begin()
        seconds, ours = self._rests[person].seconds, not isinstance(error, OSError)  # all errors of mail servers are
        logger.warning("a mail to user %d was not taken (%s); again in %d s", person, error, seconds, exc_info=ours)

    def _forget(self, person: int) -> None:
        """The next mail to this person is as good as any other."""
        self._rests.pop(person, None)
        del self._refused[person]


def is_permanent(error: Exception) -> bool:
    """Whether a mail server said that it never takes a mail to this address. Without a word like that it may later."""
    match error:
        case SMTPRecipientsRefused(recipients=answers):
            return all(code >= 500 for code, _text in answers.values())
        case SMTPSenderRefused():  # that is the site's address, and no fault of the person's
            return False
        case SMTPResponseException(smtp_code=code):
            return int(code) >= 500
    return False


def _claim(telling: PersonWaits) -> list[Notice]:
    """Record that this person is told of all this; nothing where another process tells them."""
    notices = [Notice(user=telling.person, prompt=wait.prompt, seq=wait.seq) for wait in telling.waits]
    try:
        with transaction.atomic():
            return Notice.objects.bulk_create(notices)
    except IntegrityError:
        return []


def send_soon(letter: EmailMessage) -> None:
    """Send a mail in a thread of its own, once: neither an answer nor its time says whether there was one to send."""
    threading.Thread(target=_send, args=[letter], name="mail", daemon=True).start()


def _send(letter: EmailMessage) -> None:
    try:
        letter.send()
    except Exception as error:  # noqa: BLE001 - whatever the server or the address may be
        logger.warning("a mail was not taken: %s", error)  # neither to whom, nor what it says
