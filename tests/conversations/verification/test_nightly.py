"""The nightly check: once a night, whatever the number of hosts, with its results kept and shown."""

from __future__ import annotations

import io
import logging
import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from django_q.models import Schedule

from conversations.database import guard
from conversations.files import storage
from conversations.files.uploads import Upload
from conversations.models import Conversation, Step, Verification, Worker
from conversations.prompts.start import start_conversation, start_prompt
from conversations.verification import all as nightly
from conversations.verification import stored
from conversations.verification.all import (
    BROKEN_OFF,
    KEPT_MOST,
    PROBLEMS_MOST,
    SCHEDULE,
    ensure_schedule,
    verify_nightly,
)
from conversations.verification.stored import Verified, verify
from conversations.worker import hosts, tasks
from tests.conversations.recorded import Site, at_once, meddle
from tests.conversations.support import person
from tests.engine.support import says
from tests.guarding import remove_guard

pytestmark = pytest.mark.django_db


def aged(**more: timedelta) -> None:
    """As if the last run had been so long ago."""
    for name, ago in more.items():
        Verification.objects.update(**{name: timezone.now() - ago})


def broken(count: int = 1) -> None:
    """Somebody changes steps by hand, not the first, which a prompt's row says again."""
    remove_guard()
    for pk in Step.objects.order_by("pk").values_list("pk", flat=True)[1 : 1 + count]:
        meddle("UPDATE conversations_step SET actor = 'user:7' WHERE id = %s", [pk])
    guard.install()


@pytest.mark.django_db(transaction=True)
def test_it_goes_on_beside_others_however_many_conversations_there_are(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than one fetch of a cursor brings: it writes between two of them, and so do others."""
    Conversation.objects.bulk_create(Conversation(owner=ann, title=str(n)) for n in range(2500))
    monkeypatch.setattr(nightly, "verify", lambda pk, alive: Verified())
    seen = iter(range(2500))

    def alive() -> None:
        if (number := next(seen)) < 3:
            assert at_once(lambda: Conversation.objects.filter(title="7").update(seen_seq=number + 1)) == [1]
            assert Conversation.objects.filter(title="8").update(seen_seq=number + 1) == 1

    run = verify_nightly(alive)
    assert run
    assert (run.conversations, run.count) == (2500, 0)


def test_it_says_that_it_goes_on_while_it_reads_a_long_file(ann: User) -> None:
    """For longer than a cluster may be silent: else it would be taken for one that hangs."""
    content = b"x" * (stored.CHUNK * 3 + 1)
    given = Upload.of(SimpleUploadedFile("long.txt", content, "text/plain"))
    start_prompt(start_conversation(ann), ann, "Look.", files=[given])
    said: list[None] = []
    verify(Conversation.objects.get().pk, lambda: said.append(None))
    assert len(said) >= 4


def test_what_says_so_again_and_again_beats_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    beats: list[str] = []
    monkeypatch.setattr(hosts, "beat", beats.append)
    alive = tasks.Alive("here")
    for _ in range(100):
        alive()
    assert beats == ["here"]


def test_it_stands_in_the_schedule_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many hosts start, also where two made a row each, or another version did."""
    ensure_schedule()
    ensure_schedule()
    row = Schedule.objects.get(name=SCHEDULE)
    assert (row.func, row.schedule_type, row.repeats) == ("conversations.worker.tasks.nightly", "D", -1)
    assert timezone.now() < row.next_run <= timezone.now() + timedelta(days=1)
    Schedule.objects.create(name=SCHEDULE, func="another.version", schedule_type=Schedule.ONCE)
    Schedule.objects.filter(pk=row.pk).update(func="another.version")
    ensure_schedule()
    assert Schedule.objects.get(name=SCHEDULE).func == row.func


@pytest.mark.parametrize(("hour", "day"), [(2, 1), (3, 2), (23, 2)])
def test_it_is_due_the_next_night(hour: int, day: int) -> None:
    now = datetime(2026, 5, 1, hour, 20, tzinfo=ZoneInfo("Europe/Berlin"))
    assert nightly._next_night(now) == now.replace(day=day, hour=3, minute=17)


def test_a_night_has_one_run(ann: User, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever asks second finds it done; the beat goes on meanwhile; problems are logged as errors."""
    site.ended(ann, says("Hello."))
    broken()
    Worker.objects.create(host=hosts.this_host(), beat_at=0)
    with caplog.at_level(logging.ERROR):
        tasks.nightly()
        tasks.nightly()
    run = Verification.objects.get()
    assert (run.conversations, run.steps, run.count) == (1, Step.objects.count(), 1)
    assert (
        run.problems == f"conversation {Conversation.objects.get().pk}, seq 2: {caplog.messages[0].split(': ', 1)[1]}"
    )
    assert len(caplog.messages) == 1
    assert Worker.objects.get().beat_at > 0
    aged(started_at=timedelta(hours=13))
    tasks.nightly()
    assert Verification.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_hosts_that_begin_at_one_moment(ann: User, site: Site) -> None:
    site.ended(ann, says("Hello."))
    ensure_schedule()
    runs = at_once(*[lambda: verify_nightly(lambda: None)] * 3)
    assert sum(run is not None for run in runs) == 1
    assert Verification.objects.count() == 1


def test_one_odd_payload_hides_no_other_problem(ann: User, site: Site) -> None:
    """The run goes on to the conversations after it, and to its end."""
    odd, other = site.ended(ann, says("One.")), site.ended(ann, says("Two."))
    row = Step.objects.get(prompt=odd, path="1", type="action_call")
    remove_guard()
    meddle("UPDATE conversations_step SET payload = %s WHERE id = %s", ['{"payload":5,"policy":"model"}', row.pk])
    meddle("UPDATE conversations_step SET actor = 'user:7' WHERE prompt_id = %s AND seq = 1", [other.pk])
    guard.install()
    run = verify_nightly(lambda: None)
    assert run
    assert run.ended_at
    assert run.conversations == 2
    assert f"conversation {odd.conversation_id}, seq {row.seq}: the chain is broken" in run.problems
    assert f"of conversation {odd.conversation_id} is 1, but its steps say 0" in run.problems  # rounds
    assert f"conversation {other.conversation_id}, seq 1: the chain is broken" in run.problems


def test_what_people_check_by_hand_is_beside_the_night(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it came to its end or not: the night's check comes all the same, and what hangs on it."""
    site.ended(ann, says("Hello."))
    swept: list[bool] = []
    monkeypatch.setattr(storage, "sweep", lambda alive: swept.append(True))
    call_command("verify_ledger", all=True, stdout=io.StringIO())
    Verification.objects.create()
    tasks.nightly()
    assert Verification.objects.filter(nightly=True).count() == len(swept) == 1
    tasks.nightly()
    assert Verification.objects.filter(nightly=True).count() == len(swept) == 1


def test_a_run_that_broke_off_is_begun_anew_and_one_that_goes_on_is_not() -> None:
    """However long it takes: what counts is when it last went on."""
    Verification.objects.create(nightly=True)
    aged(started_at=timedelta(hours=5))
    assert verify_nightly(lambda: None) is None
    aged(started_at=timedelta(hours=5), beat_at=BROKEN_OFF)
    run = verify_nightly(lambda: None)
    assert run
    assert run.ended_at


def test_a_run_says_that_it_goes_on(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """With how far it has come: whoever looks on sees that, and one that breaks off leaves it."""
    for _ in range(3):
        site.ended(ann, says("Hello."))
    monkeypatch.setattr(nightly, "BEAT", timedelta(0))
    seen: list[tuple[int, bool]] = []

    def alive() -> None:
        run = Verification.objects.get()
        seen.append((run.conversations, run.beat_at > run.started_at))

    verify_nightly(alive)
    assert list(dict.fromkeys(seen)) == [(0, False), (0, True), (1, True), (2, True)]


def test_the_command_keeps_what_came_of_it(ann: User, site: Site) -> None:
    """The first problems in words, all of them counted; and no more runs than are looked at."""
    for _ in range(3):
        site.ended(ann, says("Hello."))
    Verification.objects.bulk_create(Verification() for _ in range(KEPT_MOST + 3))
    broken(Step.objects.count())
    out = io.StringIO()
    with pytest.raises(CommandError) as failed:
        call_command("verify_ledger", all=True, stdout=out)
    run = Verification.objects.order_by("-pk")[0]
    assert failed.value.returncode == 1
    assert run.ended_at
    assert run.count == len(out.getvalue().splitlines()) > PROBLEMS_MOST
    assert run.problems.splitlines() == out.getvalue().splitlines()[:PROBLEMS_MOST]
    assert Verification.objects.count() == KEPT_MOST


def mark_beside(words: str, page: str) -> str:
    """The icon before these words."""
    before, found, _ = page.partition(words)
    assert found
    return str(re.findall(r'#i-([a-z]+)"', before)[-1])


def test_the_admins_first_page_alarms(ann: User, site: Site, client: Client) -> None:
    """Where problems were found, and where no check came for long: to whoever reads the record, and nobody else."""
    client.force_login(person("chief", is_superuser=True, is_staff=True))
    assert "Nothing to check yet." in client.get("/admin/").text
    prompt = site.ended(ann, says("Hello."))
    assert mark_beside("Not checked yet.", client.get("/admin/").text) == "clock"  # nothing is known to be right
    Conversation.objects.update(created_at=timezone.now() - timedelta(hours=37))
    assert "Never checked." in client.get("/admin/").text
    call_command("verify_ledger", all=True, stdout=io.StringIO())
    assert mark_beside("Intact.", client.get("/admin/").text) == "check"
    aged(started_at=timedelta(hours=37))
    assert "Not checked recently." in client.get("/admin/").text
    broken()
    with pytest.raises(CommandError):
        call_command("verify_ledger", all=True, stdout=io.StringIO())
    html = client.get("/admin/").text
    assert "1 problem found." in html
    assert f'href="/admin/conversations/step/?conversation__id__exact={prompt.conversation_id}"' in html
    Verification.objects.create()  # one that is under way, or broke off, hides nothing
    assert "1 problem found." in client.get("/admin/").text
    client.force_login(person("staff", is_staff=True))
    assert 'id="ledgers"' not in client.get("/admin/").text


def test_the_admins_first_page_alarms_where_a_night_broke_off(ann: User, site: Site, client: Client) -> None:
    """After an hour without a sign of life, until a check comes to its end."""
    client.force_login(person("chief", is_superuser=True, is_staff=True))
    site.ended(ann, says("Hello."))
    verify_nightly(lambda: None)
    Verification.objects.create(nightly=True)
    assert "Intact." in client.get("/admin/").text
    aged(beat_at=BROKEN_OFF)
    html = client.get("/admin/").text
    assert (
        "The last check failed.</b> See the log; run <code>manage.py verify_ledger --all</code> to check now." in html
    )
    assert "make sure one is running" not in html
    assert "Intact." not in html
    call_command("verify_ledger", all=True, stdout=io.StringIO())
    assert "Intact." in client.get("/admin/").text
    Verification.objects.create()  # by hand: whoever did that saw it
    aged(beat_at=BROKEN_OFF)
    assert "Intact." in client.get("/admin/").text
