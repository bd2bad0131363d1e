"""Digests: one e-mail lists all that is due for a person, not too often, and not in their quiet hours."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.utils import timezone
from pytest_django.fixtures import Settings

from conversations.accounts.presence import record_presence
from conversations.approvals.decisions import decide
from conversations.database.sql import database_time
from conversations.models import Account, Notice, NoticeKind
from conversations.notifications import letters
from conversations.notifications.choices import choose
from conversations.notifications.events import notify_ended
from conversations.notifications.kinds import Ways
from conversations.notifications.mail import Notifier
from conversations.notifications.notify import notify
from conversations.prompts.listing import mark_seen
from conversations.prompts.start import start_conversation
from tests.conversations.notifications.test_mail import Server
from tests.conversations.support import Story, asking, person

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _settings(settings: Settings) -> Iterator[None]:
    settings.AGENTSITE_MAIL_AFTER_SECONDS = -60
    settings.AGENTSITE_URL = "https://agents.example"
    Server.away, Server.refuses, Server.error = False, set(), OSError("not now")
    yield
    mail.outbox = []


@pytest.fixture
def mara(db: None) -> User:
    return person("mara", email="mara@example.org", first_name="Mara")


def failing(owner: User, title: str = "Nightly figures") -> Story:
    """A turn that failed, and is noted."""
    story = Story(owner, conversation=start_conversation(owner, title))
    story.ends("failed", "model_error")
    notify_ended()
    return story


def later(person: User, seconds: float = 301) -> None:
    """Time passes since the last e-mail."""
    account = Account.objects.get(user=person)
    Account.objects.filter(pk=account.pk).update(mailed_at=account.mailed_at - seconds)


def test_what_waits_and_what_has_happened_is_one_email(mara: User) -> None:
    asking(mara, "ls")
    asking(mara, "make")
    story = failing(mara)
    Story(mara).ends()
    notify_ended()  # that one is not wanted by e-mail
    notify(mara, NoticeKind.TRIGGER, title="Every morning http://evil.example\nBcc: x", link="/triggers/3/")
    notifier = Notifier()
    assert [notifier.send_due(), notifier.send_due()] == [1, 0]
    (letter,) = mail.outbox
    assert letter.subject == "2 turns are waiting for you, and 2 more"
    body = str(letter.body)
    for words in ("First line: ls\n", "First line: make\n", "Failed: Nightly figures\n"):
        assert words in body
    assert f"https://agents.example/c/{story.conversation.pk}/#t-{story.prompt.pk}\n" in body
    assert "Switched off: Every morning http[://]evil[.]example" in body
    assert "https://agents.example/triggers/3/\n" in body
    assert "Ended" not in body
    assert "https://agents.example/account/#notifications" in body
    assert not Notice.objects.filter(mail=True, mailed_at=None).exists()


def test_the_only_thing_is_the_subject(mara: User) -> None:
    failing(mara)
    Notifier().send_due()
    assert [letter.subject for letter in mail.outbox] == ["Failed: Nightly figures"]
    assert "decide" not in str(mail.outbox[0].body)


def test_the_first_comes_at_once_and_the_next_when_the_time_is_over(mara: User) -> None:
    """All that came up meanwhile is in it; others are not kept by it."""
    nora = person("nora", email="nora@example.org")
    failing(mara, "One")
    assert Notifier().send_due() == 1
    for title in ("Two", "Three"):
        failing(mara, title)
    asking(mara)
    assert Notifier().send_due() == 0
    failing(nora)
    assert Notifier().send_due() == 1
    later(mara, 290)
    assert Notifier().send_due() == 0
    later(mara, 11)
    assert Notifier().send_due() == 1
    assert mail.outbox[-1].subject == "Waiting for you: Run it now., and 2 more"
    assert [len([to for to in each.to if to == nora.email]) for each in mail.outbox] == [0, 1, 0]


def test_quiet_hours_end_with_one_email(mara: User) -> None:
    """Of what was decided or seen in them it says nothing."""
    clock = datetime.fromtimestamp(database_time(), UTC)
    begin, end = ((clock + timedelta(hours=hours)).time() for hours in (-1, 1))
    choose(mara, {}, (begin, end))
    _story, output = asking(mara, "ls")
    asking(mara, "make")
    failing(mara)
    looked = failing(mara, "Looked at")
    assert Notifier().send_due() == 0
    decide(output.pk, mara, "reject", digest=output.digest, via="page")
    looked.conversation.refresh_from_db()
    mark_seen(looked.conversation.pk, looked.conversation.seq)
    choose(mara, {}, ((clock + timedelta(hours=1)).time(), (clock + timedelta(hours=2)).time()))
    assert [Notifier().send_due(), Notifier().send_due()] == [1, 0]
    (letter,) = mail.outbox
    assert letter.subject == "Waiting for you: Run it now., and 1 more"
    assert "First line: make" in letter.body
    assert "Looked at" not in letter.body


def test_quiet_hours_are_by_the_clock_of_their_zone(mara: User) -> None:
    clock = datetime.fromtimestamp(database_time(), UTC)
    begin, end = ((clock + timedelta(hours=hours)).time() for hours in (4, 6))  # five hours ahead: Pakistan
    choose(mara, {}, (begin, end))
    failing(mara)
    Account.objects.update(zone="Asia/Karachi")
    assert Notifier().send_due() == 0
    Account.objects.update(zone="UTC")
    assert Notifier().send_due() == 1


def test_whoever_looks_again_is_told_when_they_no_longer_do(mara: User) -> None:
    failing(mara)
    record_presence(mara.pk)
    assert Notifier().send_due() == 0
    Account.objects.update(looked_at=database_time() - 31)
    assert Notifier().send_due() == 1


def test_what_is_no_longer_wanted_is_not_sent(mara: User) -> None:
    failing(mara)
    choose(mara, {NoticeKind.FAILED: Ways(page=True, mail=False)}, None)
    choose(mara, {NoticeKind.FAILED: Ways(page=True, mail=True)}, None)
    assert Notifier().send_due() == 0


def test_nothing_is_sent_of_what_was_all_seen_and_the_next_comes_at_once(mara: User) -> None:
    story = failing(mara)
    story.conversation.refresh_from_db()
    mark_seen(story.conversation.pk, story.conversation.seq)
    assert Notifier().send_due() == 0
    assert Account.objects.get(user=mara).mailed_at == 0
    failing(mara)
    assert Notifier().send_due() == 1


def test_what_the_server_refused_is_sent_later_and_whole(
    mara: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EMAIL_BACKEND = "tests.conversations.notifications.test_mail.Server"
    failing(mara)
    asking(mara)
    Server.refuses = {mara.email}
    assert Notifier().send_due() == 0
    assert not Notice.objects.exclude(mailed_at=None).exists()
    Server.refuses = set()
    assert Notifier().send_due() == 1
    assert mail.outbox[0].subject == "Waiting for you: Run it now., and 1 more"


def test_a_flood_is_one_email_with_a_number(mara: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "EVENTS_MOST", 2)
    for number in range(5):
        failing(mara, f"Run {number}")
    assert Notifier().send_due() == 1
    (letter,) = mail.outbox
    assert letter.subject == "5 things happened while you were away"
    assert "And 3 more: https://agents.example/" in letter.body
    assert "Run 2" not in letter.body


def test_what_happened_long_ago_is_not_told_any_more(mara: User) -> None:
    """Such as to somebody whose address was entered only now."""
    failing(mara, "Old figures")
    Notice.objects.update(at=timezone.now() - timedelta(days=8))
    assert Notifier().send_due() == 0
    failing(mara, "New figures")
    assert Notifier().send_due() == 1
    assert ("New figures" in mail.outbox[0].body, "Old figures" in mail.outbox[0].body) == (True, False)
