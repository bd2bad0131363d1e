"""People are told by e-mail of turns that wait for them, once for each pause, and of what has happened."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from smtplib import SMTPDataError, SMTPRecipientsRefused, SMTPSenderRefused, SMTPServerDisconnected
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.mail import EmailMessage
from django.core.mail.backends.locmem import EmailBackend
from django.db import connection
from pytest_django.fixtures import Settings

from agents.engine.ledger import Step
from conversations.accounts.presence import record_presence
from conversations.approvals.decisions import decide
from conversations.database.sql import database_time
from conversations.models import Account, Notice, NoticeChoice, NoticeKind, Origin, Prompt, State
from conversations.notifications import due as dues
from conversations.notifications import mail as mails
from conversations.notifications import waits
from conversations.notifications.due import due
from conversations.notifications.letters import line
from conversations.notifications.mail import Notifier
from conversations.prompts.start import start_conversation
from tests.agentsite.processes import wait_for
from tests.conversations.support import Story, asking, person

pytestmark = pytest.mark.django_db


NEVER, LATER = (550, b"no such mailbox"), (451, b"greylisted, try again in 5 minutes")


class Server(EmailBackend):
    """A mail server that is away, or refuses letters to some."""

    away = False
    refuses: set[str] = set()
    error: Exception = SMTPRecipientsRefused({})
    tries = opened = 0

    def open(self) -> bool:
        Server.opened += 1
        if Server.away:
            raise ConnectionRefusedError("nobody listens")
        return True

    def send_messages(self, messages: Sequence[EmailMessage]) -> int:
        if Server.refuses & {to for message in messages for to in message.to}:
            Server.tries += 1
            raise Server.error
        return super().send_messages(messages)


@pytest.fixture(autouse=True)
def _settings(settings: Settings) -> Iterator[None]:
    settings.AGENTSITE_MAIL_AFTER_SECONDS = -60  # a turn that waits has done so for long enough
    settings.AGENTSITE_MAIL_EVERY_SECONDS = -60  # the last e-mail was long ago
    settings.AGENTSITE_URL = "https://agents.example"
    Server.away, Server.refuses, Server.opened, Server.tries = False, set(), 0, 0
    yield
    mail.outbox = []


class Clock:
    """The monotonic clock, as the test sets it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(mails, "monotonic", clock)
    return clock


def refused(answer: tuple[int, bytes]) -> SMTPRecipientsRefused:
    return SMTPRecipientsRefused({"mara@example.org": answer})


@pytest.fixture
def mara(db: None) -> User:
    return person("mara", email="mara@example.org", first_name="Mara")


def told() -> list[str]:
    """To whom mails went so far."""
    return [to for letter in mail.outbox for to in letter.to]


def text(letter: Any) -> str:
    return str(letter.body)


def test_the_owner_is_told_once_of_each_pause(mara: User) -> None:
    story, output = asking(mara, "rm -rf build")
    notifier = Notifier()
    assert [notifier.send_due() for _ in range(3)] == [1, 0, 0]
    [letter] = mail.outbox
    assert letter.to == ["mara@example.org"]
    assert letter.subject == "Waiting for you: Run it now."
    assert f"https://agents.example/c/{story.conversation.pk}/#a-{output.pk}" in text(letter)
    for words in ("Mara,", "Action: Run a command (high risk)", "First line: rm -rf build", "1 Jan 2099, 00:00 UTC"):
        assert words in text(letter)

    decide(output.pk, mara, "approve", digest=output.digest, via="page")
    assert notifier.send_due() == 0
    story.begins(Step("model", "action_call", {"policy": "shell.run", "payload": {}}, output.path))
    story.pauses()  # it waits again
    story.asks_model()
    call = story.call("shell.run", command="make")
    story.answers(call)
    story.gate(call)
    story.pauses()
    assert [notifier.send_due(), notifier.send_due()] == [1, 0]
    assert Notice.objects.filter(user=mara).count() == 2


def test_whoever_looks_is_told_when_they_no_longer_do(mara: User) -> None:
    record_presence(mara.pk)
    asking(mara)
    assert Notifier().send_due() == 0
    assert not Notice.objects.exists()
    Account.objects.filter(user=mara).update(looked_at=database_time() - 31)
    assert Notifier().send_due() == 1


def test_a_turn_waits_a_little_before_anybody_is_told(mara: User, settings: Settings) -> None:
    settings.AGENTSITE_MAIL_AFTER_SECONDS = 3600
    asking(mara)
    assert Notifier().send_due() == 0


@pytest.mark.parametrize("why", ["no address", "unwanted", "left"])
def test_nobody_is_told_who_cannot_or_will_not_be(mara: User, why: str) -> None:
    asking(mara)
    if why == "unwanted":
        NoticeChoice.objects.create(user=mara, kind=NoticeKind.WAITS, page=True, mail=False)
    if why == "no address":
        mara.email = ""
    mara.is_active = why != "left"
    mara.save()
    assert Notifier().send_due() == 0


def test_who_may_decide_is_told_where_the_owner_may_not(mara: User) -> None:
    """Staff or not: they decide in the inbox."""
    mara.groups.clear()
    person("kim", "decide_approval", email="kim@example.org", is_staff=True)
    person("lou", "decide_approval", email="lou@example.org")
    person("max", email="max@example.org", is_staff=True)
    User.objects.create_superuser("root", "root@example.org", "secret")
    _story, output = asking(mara)
    assert Notifier().send_due() == 3
    assert sorted(told()) == ["kim@example.org", "lou@example.org", "root@example.org"]
    assert f"https://agents.example/approvals/{output.pk}/" in text(mail.outbox[0])
    assert 'Mara asked, in "Run it now."' in text(mail.outbox[0])


def test_of_a_turn_that_nobody_started_others_are_told_later(mara: User, settings: Settings) -> None:
    """Those whom the administrator named, and who may decide it. Of a turn that a person started, they are not."""
    settings.AGENTSITE_UNATTENDED_AFTER_SECONDS = 3600
    person("kim", "decide_approval", "told_of_unattended", email="kim@example.org")
    person("lou", "told_of_unattended", email="lou@example.org")
    person("max", "decide_approval", email="max@example.org")
    User.objects.create_superuser("root", "root@example.org", "secret")
    _story, output = asking(mara)
    asking(mara, "whoami")
    Prompt.objects.filter(pk=output.prompt_id).update(origin=Origin.TRIGGER)
    notifier = Notifier()
    assert [notifier.send_due(), *told()] == [1, "mara@example.org"]
    settings.AGENTSITE_UNATTENDED_AFTER_SECONDS = -60
    assert [notifier.send_due(), notifier.send_due()] == [1, 0]
    assert told()[1:] == ["kim@example.org"]
    assert mail.outbox[1].subject == "Waiting for you: Run it now."
    assert f"https://agents.example/approvals/{output.pk}/" in text(mail.outbox[1])


def test_several_turns_are_one_mail(mara: User) -> None:
    for command in ("ls", "make", "true"):
        asking(mara, command)
    assert Notifier().send_due() == 1
    assert mail.outbox[0].subject == "3 turns are waiting for you"
    assert all(f"First line: {command}\n" in text(mail.outbox[0]) for command in ("ls", "make", "true"))
    assert Notice.objects.count() == 3


def test_a_turn_with_several_actions_says_how_many(mara: User) -> None:
    story = Story(mara, "Both.")
    story.asks_model()
    calls = [story.call("shell.run", command=command) for command in ("one", "two", "three")]
    story.answers(*calls)
    for call in calls:
        story.gate(call)
    story.pauses()
    Notifier().send_due()
    assert "And 2 more actions in this turn." in text(mail.outbox[0])


@pytest.mark.parametrize("expires", [True, False])
def test_a_question_is_told_as_one(mara: User, expires: bool) -> None:
    """With its words, without a link in them, and what happens if nobody answers; if anything does."""
    story = Story(mara, "Book it.")
    story.asks_person("Is it http://evil.example?\nMore.", **({} if expires else {"expires_at": ""}))
    story.pauses()
    Notifier().send_due()
    (letter,) = mail.outbox
    assert "Question: Is it http[://]evil[.]example? \u2026" in letter.body
    assert "Action:" not in letter.body
    assert ("without an answer, the work continues without one." in letter.body) is expires


def test_who_must_answer_instead_is_told(mara: User) -> None:
    kim = person("kim", "decide_approval", is_staff=True, email="kim@example.org")
    story = Story(mara, "Send it.")
    gate = story.asks_person("May it go out?", who="another")
    story.pauses()
    Notifier().send_due()
    letters = {to: letter.body for letter in mail.outbox for to in letter.to}
    assert f"/approvals/{gate.pk}/" in letters[kim.email]
    assert "Someone else must decide this" in letters[mara.email]


def test_what_a_model_wrote_can_do_nothing_in_a_mail(mara: User) -> None:
    """A title with line breaks makes no header, a link no link, and what turns text round is seen (T-45)."""
    hostile = "Pay\r\nBcc: all@example.org\u202e\u2066 https://evil.example/approve www.evil.example"
    conversation = start_conversation(mara)
    conversation.title = hostile
    conversation.save()
    story = Story(mara, hostile, conversation)
    story.asks_model()
    call = story.call("shell.run", command="echo \u202eevil\u2028# https://evil.example/\nrm -rf /")
    story.answers(call)
    story.gate(call, reason="\u200bClick https://evil.example/\r\nSubject: no")
    story.pauses()
    assert Notifier().send_due() == 1
    raw = mail.outbox[0].message()
    assert raw["Bcc"] is None
    assert len(raw.get_all("Subject") or []) == 1
    body = text(mail.outbox[0])
    assert not any(hidden in body + mail.outbox[0].subject for hidden in "\u202e\u2066\u200b\u2028\r")
    assert "[U+202E]" in body
    links = [word for word in body.split() if "://" in word and "[" not in word]
    assert links
    assert all(link.startswith("https://agents.example/") for link in links)
    assert "evil.example" not in body


def test_a_line_is_one_line_without_links() -> None:
    assert line("see http://a.example/x\nnot this") == "see http[://]a[.]example/x \u2026"
    assert line("mail me@a.example, ./run.sh v1.2") == "mail me[@]a[.]example, ./run[.]sh v1[.]2"
    assert line("evil\u3002example") == "evil[\u3002]example"
    assert "\ud800" not in line("half \ud800 a character")


def test_a_mail_server_that_is_away_costs_no_notice(mara: User, settings: Settings) -> None:
    """Nobody counts as told, and when it is back everybody is."""
    settings.EMAIL_BACKEND = f"{__name__}.Server"
    asking(mara)
    Server.away = True
    with pytest.raises(ConnectionRefusedError):
        Notifier().send_due()
    assert not Notice.objects.exists()
    Server.away = False
    assert Notifier().send_due() == 1


@pytest.mark.parametrize("error", [refused(NEVER), SMTPDataError(554, b"we take no such mail")])
def test_a_letter_that_never_will_be_taken_is_tried_three_times(
    mara: User, settings: Settings, clock: Clock, error: Exception
) -> None:
    settings.EMAIL_BACKEND = f"{__name__}.Server"
    nora = person("nora", email="nora@example.org")
    asking(mara)
    asking(nora)
    Server.refuses, Server.error = {"mara@example.org"}, error
    notifier = Notifier()
    sent = []
    for _ in range(5):
        sent.append(notifier.send_due())
        clock.now += 301
    assert sent == [1, 0, 0, 0, 0]
    assert told() == ["nora@example.org"]  # one who is refused keeps nobody
    assert Server.tries == 3
    assert Notice.objects.filter(user=mara).count() == 1  # given up

    Server.refuses = set()
    asking(mara)  # another one is told
    assert notifier.send_due() == 1


@pytest.mark.parametrize(
    "error",
    [
        refused(LATER),
        SMTPDataError(452, b"too many mails from you this minute"),
        SMTPSenderRefused(550, b"we do not know the site", "site@example.org"),
        SMTPServerDisconnected("it hung up"),
        TimeoutError("timed out"),
    ],
)
def test_a_letter_that_may_be_taken_later_is_never_given_up(
    mara: User, settings: Settings, clock: Clock, error: Exception
) -> None:
    """Greylisting, a limit, a server that hangs up: however long it takes, and without haste."""
    settings.EMAIL_BACKEND = f"{__name__}.Server"
    asking(mara)
    Server.refuses, Server.error = {"mara@example.org"}, error
    notifier = Notifier()
    for _ in range(2 * 20):  # twenty minutes
        assert notifier.send_due() == 0
        assert not Notice.objects.exists()
        clock.now += 30
    assert 6 <= Server.tries <= 10
    Server.refuses = set()
    clock.now += 300
    assert [notifier.send_due(), notifier.send_due()] == [1, 0]


def test_whoever_rests_keeps_nobody(
    mara: User, settings: Settings, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose mail is refused take no place among those that one look reads."""
    settings.EMAIL_BACKEND = f"{__name__}.Server"
    monkeypatch.setattr(dues, "AT_ONCE", 2)
    for _ in range(3):
        asking(mara)
    asking(person("nora", email="nora@example.org"))
    Server.refuses, Server.error = {"mara@example.org"}, refused(LATER)
    notifier = Notifier()
    assert [notifier.send_due(), notifier.send_due()] == [0, 1]
    assert told() == ["nora@example.org"]


def test_one_look_reads_so_many_and_the_next_the_others(mara: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dues, "AT_ONCE", 2)
    for _ in range(5):
        asking(mara)
    assert [notifier.send_due() for notifier in [Notifier()] * 4] == [1, 1, 1, 0]
    assert Notice.objects.count() == 5


def test_what_was_told_is_not_read_again(
    mara: User, django_assert_max_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither row by row nor as a list of keys, which a database takes only so many of."""
    mara.groups.clear()  # staff are told
    staff = [person(f"kim{n}", "decide_approval", email="kim@example.org", is_staff=True) for n in range(3)]
    for owner in (mara, *staff):
        for _ in range(5):
            asking(owner)
    assert Notifier().send_due() == 3
    rows: list[Any] = []
    monkeypatch.setattr(waits, "_wait", rows.append)
    with django_assert_max_num_queries(9) as asked:
        assert due() == []
    assert rows == []
    assert max(len(query["sql"]) for query in asked.captured_queries) < 10_000


def test_a_turn_that_waits_without_a_pause_is_left_alone(mara: User) -> None:
    """As a database that was mended by hand could have it."""
    story = Story(mara)
    Prompt.objects.filter(pk=story.prompt.pk).update(state=State.WAITING)
    asking(mara)
    assert Notifier().send_due() == 1


def test_what_was_decided_meanwhile_is_not_told(mara: User, monkeypatch: pytest.MonkeyPatch) -> None:
    _story, output = asking(mara)
    found = due()
    decide(output.pk, mara, "reject", digest=output.digest, via="page")
    monkeypatch.setattr(mails, "due", lambda but: found)
    assert Notifier().send_due() == 0
    assert not mail.outbox


@pytest.mark.django_db(transaction=True)
def test_a_server_that_does_not_answer_keeps_no_sweep(mara: User, settings: Settings) -> None:
    """The sweep goes on while a round hangs, starts no second one, and backs off from a dead server."""
    settings.EMAIL_BACKEND = f"{__name__}.Hanging"
    asking(mara)
    notifier = Notifier()
    for _ in range(5):
        notifier.look()  # returns at once
    wait_for(lambda: Hanging.opened == 1)
    Hanging.answer.set()
    wait_for(lambda: not any(thread.name == "mail" for thread in threading.enumerate()))
    for _ in range(5):
        notifier.look()
    assert Hanging.opened == 1
    assert not Notice.objects.exists()


class Hanging(EmailBackend):
    """A mail server that answers when the test says so, and then badly."""

    opened = 0
    answer = threading.Event()

    def open(self) -> bool:
        Hanging.opened += 1
        Hanging.answer.wait(30)
        raise TimeoutError("timed out")


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_of_two_sweeps_at_once_one_tells(mara: User) -> None:
    asking(mara)
    start = threading.Barrier(2)

    def sweep() -> None:
        found = due()
        start.wait(30)
        with mail.get_connection() as server:
            for who, told in found:
                Notifier()._notify(who, told, server)
        connection.close()

    both = [threading.Thread(target=sweep) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join(30)
    assert told() == ["mara@example.org"]
    assert Notice.objects.count() == 1
