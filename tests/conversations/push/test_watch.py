"""The watch notices commits of other processes: on SQLite by a counter, on PostgreSQL by notifications."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from agents.engine.ledger import Step
from conversations.database import hints
from conversations.database.commits import ChangeNotice, Watch
from conversations.erasure.conversations import erase
from conversations.ledger.claims import Claim
from conversations.ledger.locked import locked_turn
from conversations.models import Conversation, Draft, Prompt
from conversations.prompts.killswitch import turn_off, turn_on
from conversations.prompts.listing import archive, mark_seen, rename
from conversations.prompts.start import start_conversation, start_prompt
from conversations.push.watch import open_watch
from conversations.worker.drafts import DraftRow, store
from tests.conversations.recorded import at_once, meddle, said, taken

pytestmark = pytest.mark.django_db(transaction=True)
SOON = 5.0
"""Seconds within which a change must be noticed. It takes milliseconds, but the machine may be busy."""
MOMENT = 0.1


@pytest.fixture
def watch() -> Iterator[Watch]:
    """A watch that has reported `everything`. What other fixtures did is reported to nobody any more."""
    hints.flush()
    opened = open_watch()
    assert opened.wait(SOON) == ChangeNotice(everything=True)
    yield opened
    opened.close()


@pytest.fixture
def prompt(ann: User) -> Prompt:
    return start_prompt(start_conversation(ann), ann, "Go.")


def says(prompt: Prompt) -> None:
    """Append a step."""
    with locked_turn(prompt.pk) as turn:
        turn.append([said()])


def draws(held: Claim, text: str, size: int) -> None:
    """Write a piece of a draft, like a worker."""
    store([DraftRow(held.prompt, "1", 1, held.fence, text, size)])


def of(*prompts: Prompt) -> ChangeNotice:
    return ChangeNotice(frozenset(prompt.conversation_id for prompt in prompts))


def test_it_begins_with_everything(prompt: Prompt) -> None:
    """What was committed before is not reported: the caller reads it anyway."""
    opened = open_watch()
    assert opened.wait(0) == ChangeNotice(everything=True)
    assert opened.wait(0) is None
    opened.close()
    assert opened.wait(0) == ChangeNotice(everything=True)
    opened.close()


def test_a_step_is_noticed_and_told_once(prompt: Prompt, watch: Watch) -> None:
    says(prompt)
    assert watch.wait(SOON) == of(prompt)
    assert watch.wait(MOMENT) is None


def test_a_new_turn_is_noticed(ann: User, watch: Watch) -> None:
    prompt = start_prompt(start_conversation(ann), ann, "Go.")
    assert watch.wait(SOON) == of(prompt)


def test_it_waits_no_longer_than_it_is_told(watch: Watch) -> None:
    begun = time.monotonic()
    assert watch.wait(0.2) is None
    assert 0.2 <= time.monotonic() - begun < 2


def test_nothing_is_missed_between_two_waits(ann: User, watch: Watch) -> None:
    """The tailer reads and renders meanwhile."""
    prompts = [start_prompt(start_conversation(ann), ann, "Go.") for _ in range(20)]
    told: set[int] = set()
    give_up = time.monotonic() + SOON
    while len(told) < 20 and time.monotonic() < give_up:
        if change := watch.wait(MOMENT):
            assert not change.everything
            told |= change.conversations
    assert told == {prompt.conversation_id for prompt in prompts}


def test_every_commit_of_many_writers_is_noticed(ann: User, watch: Watch) -> None:
    """Ten connections write in parallel while it waits and reads."""
    prompts = [start_prompt(start_conversation(ann), ann, "Go.") for _ in range(10)]
    written = threading.Event()

    def write(prompt: Prompt) -> None:
        for _ in range(20):
            says(prompt)

    def seen() -> dict[int, int]:
        """Return the last step of each conversation at the watch's last notice."""
        last: dict[int, int] = {}
        finished = False
        while not finished:
            finished = written.is_set()  # before the wait: what was committed until then, it tells
            while change := watch.wait(MOMENT):
                for each in change.conversations:
                    last[each] = Prompt.objects.get(conversation=each).steps.count()
        return last

    def write_all() -> None:
        try:
            assert at_once(*[lambda p=prompt: write(p) for prompt in prompts]) == [None] * 10
        finally:
            written.set()

    writing = threading.Thread(target=write_all)
    writing.start()
    assert seen() == {prompt.conversation_id: 21 for prompt in prompts}
    writing.join()


def test_a_draft_that_grows_begins_anew_or_goes_is_noticed(ann: User, prompt: Prompt, watch: Watch) -> None:
    other = start_prompt(start_conversation(ann), ann, "Go.")
    held, others = taken(prompt), taken(other)
    draws(others, "Still.", 6)
    while watch.wait(MOMENT):
        pass
    draws(held, "One ", 4)
    assert watch.wait(SOON) == of(prompt)
    draws(held, "two.", 8)
    assert watch.wait(SOON) == of(prompt)
    store([DraftRow(held.prompt, "1", 2, held.fence, "One two.", 8)])
    assert watch.wait(SOON) == of(prompt)
    assert Draft.objects.get(prompt=prompt).text == "One two."
    with locked_turn(prompt.pk) as turn:
        turn.append([said(), Step("runtime", "action_result", {"state": "completed", "stop_reason": "text"})])
    assert not Draft.objects.filter(prompt=prompt).exists()
    assert watch.wait(SOON) == of(prompt)
    assert watch.wait(MOMENT) is None


def test_what_is_no_step_and_no_draft_tells_nothing(prompt: Prompt, watch: Watch) -> None:
    """Leases are renewed and heartbeats are written all the time."""
    meddle("UPDATE conversations_prompt SET lease_until = lease_until")
    assert watch.wait(MOMENT) is None


def test_what_stands_in_the_list_otherwise_is_noticed(prompt: Prompt, watch: Watch) -> None:
    """No step records it. It is reported once."""
    talk = prompt.conversation
    for change in (partial(rename, talk, "Other"), partial(archive, talk), partial(mark_seen, talk.pk, 1)):
        Conversation.objects.update(seen_seq=0)
        change()
        assert watch.wait(SOON) == of(prompt)
        change()
        told = watch.wait(MOMENT)
        assert told is None or change.func is rename  # which takes the same title again


def test_what_is_rolled_back_tells_nothing(prompt: Prompt, watch: Watch) -> None:
    with locked_turn(prompt.pk) as turn:
        turn.append([said()])
        transaction.set_rollback(True)
    assert watch.wait(MOMENT) is None


def test_an_erased_conversation_does_no_harm(ann: User, prompt: Prompt, watch: Watch) -> None:
    """Its steps had the highest ids of all; later ones are noticed all the same."""
    held = taken(prompt)
    draws(held, "On its way.", 11)
    meddle("UPDATE conversations_prompt SET lease_until = 0")
    erase(prompt.conversation, ann)
    while watch.wait(MOMENT):
        pass
    other = start_prompt(start_conversation(ann), ann, "Go.")
    assert watch.wait(SOON) == of(other)


ERASES = """
import sys
import django
django.setup()
from django.contrib.auth.models import User
from django.db import connection
from conversations.erasure.conversations import erase
from conversations.models import Conversation
connection.settings_dict["NAME"] = sys.argv[1]
erase(Conversation.objects.get(pk=sys.argv[2]), User.objects.get())
"""


def test_what_another_process_erased_is_noticed(ann: User, prompt: Prompt, watch: Watch) -> None:
    """As `manage.py erase` does. No row is left to say whose it was, so everything is read."""
    talk, name = prompt.conversation_id, str(connection.settings_dict["NAME"])
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "agentsite.settings"}
    command = [sys.executable, "-c", ERASES, name, str(talk)]
    subprocess.run(command, cwd=Path(__file__).parents[3], env=environment, check=True)
    told = watch.wait(SOON)
    assert told
    assert told.everything


def test_a_vacuum_does_no_harm(prompt: Prompt, watch: Watch) -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
    assert watch.wait(MOMENT) is None
    says(prompt)
    assert watch.wait(SOON) == of(prompt)


OTHER_PROCESS = """
import sys, time
import django
django.setup()
from django.db import connection
from agents.engine.ledger import Step
from conversations.ledger.locked import locked_turn
connection.settings_dict["NAME"] = sys.argv[1]
while sys.stdin.readline():
    with locked_turn(int(sys.argv[2])) as turn:
        turn.append([Step("model", "text", {"text": "From elsewhere."})])
    print(time.time(), flush=True)
"""


def test_a_commit_of_another_process_is_noticed_at_once(prompt: Prompt, watch: Watch) -> None:
    """Within 0.2 s: mostly within some ten milliseconds, but the machine may be busy, so the middle of five counts."""
    name = str(connection.settings_dict["NAME"])
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "agentsite.settings"}
    command = [sys.executable, "-c", OTHER_PROCESS, name, str(prompt.pk)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        command, cwd=root, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin
        assert other.stdout
        took = []
        for _ in range(5):
            other.stdin.write("\n")
            other.stdin.flush()
            assert watch.wait(30) == of(prompt)
            noticed = time.time()
            took.append(noticed - float(other.stdout.readline()))
    assert sorted(took)[2] < 0.2


def test_a_database_that_does_not_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch, prompt: Prompt) -> None:
    """Nothing is raised; once it answers, everything is to be looked at."""
    opened = open_watch()
    with monkeypatch.context() as context:
        context.setitem(connection.settings_dict, "NAME", "/no/such/folder/and/database")
        assert opened.wait(0.05) is None
    assert opened.wait(SOON) == ChangeNotice(everything=True)
    opened.close()


@pytest.mark.postgres
def test_a_lost_connection_means_everything(prompt: Prompt, watch: Watch) -> None:
    """PostgreSQL was restarted, or somebody ended the connection: what was missed is found, and it goes on."""
    meddle(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND query = 'LISTEN agentsite'"
    )
    says(prompt)
    assert watch.wait(0.05) is None
    assert watch.wait(SOON) == ChangeNotice(everything=True)
    says(prompt)
    assert watch.wait(SOON) == of(prompt)


def test_the_kill_switch_concerns_everything(watch: Watch) -> None:
    """Turned on and off, by whatever process, and told at once."""
    turn_on(None, "A leak.")
    assert watch.wait(SOON) == ChangeNotice(everything=True)
    assert turn_off(None)
    assert watch.wait(SOON) == ChangeNotice(everything=True)


@pytest.mark.postgres
@pytest.mark.parametrize("said", ["", "12,new:7", "?"])
def test_what_is_not_understood_may_be_about_anything(watch: Watch, said: str) -> None:
    """Another version of the site, or a program of somebody else's: whoever listens goes on listening."""
    meddle("SELECT pg_notify(%s, %s)", [hints.CHANNEL, said])
    notice = watch.wait(SOON)
    assert notice
    assert notice.everything
    assert watch.wait(0) is None
