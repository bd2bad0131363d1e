"""What wakes drains: a commit by which there may be something to claim or to stop, and no other."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from pytest_django.fixtures import Settings

from agents.engine.ledger import Step
from conversations.approvals.decisions import decide
from conversations.database import hints
from conversations.database.commits import Watch, open_work_watch
from conversations.erasure.conversations import erase
from conversations.ledger.journal import append
from conversations.models import Worker
from conversations.prompts.killswitch import turn_off, turn_on
from conversations.prompts.listing import rename
from conversations.prompts.start import cancel_prompt, start_conversation, start_prompt
from conversations.worker import hosts
from conversations.worker.drafts import DraftRow, store
from tests.conversations.recorded import place, record, said, taken
from tests.conversations.support import asking

pytestmark = pytest.mark.django_db(transaction=True)
SOON = 5.0
MOMENT = 0.2
NOTHING = {"input_tokens": 0, "output_tokens": 0}


@pytest.fixture
def watch() -> Iterator[Watch]:
    """A watch that has reported what was before."""
    hints.flush()
    opened = open_work_watch()
    opened.wait(SOON)
    yield opened
    opened.close()


def hears(watch: Watch) -> bool:
    """Whether there was something for drains; what is committed together may be told one after the other."""
    notices = []
    while notice := watch.wait(MOMENT):
        notices.append(notice)
    return any(notice.concerns_drains for notice in notices)


def test_drains_hear_of_what_people_do(ann: User, watch: Watch) -> None:
    _, output = asking(ann)
    assert hears(watch)
    prompt = start_prompt(start_conversation(ann), ann, "Go.")
    assert hears(watch)
    Worker.objects.create(host="here")
    done: list[Callable[[], object]] = [
        partial(decide, output.pk, ann, "approve", digest=output.digest, via="page"),
        partial(cancel_prompt, prompt.pk, ann),
        partial(turn_on, None, "A leak."),
        partial(turn_off, None),
        partial(hosts.stop, "here"),
        partial(erase, prompt.conversation, ann),
    ]
    for does in done:
        does()
        assert hears(watch), does


def test_they_hear_of_turns_that_end_and_not_of_what_running_ones_record(ann: User, watch: Watch) -> None:
    """Nor of what is written of an answer, nor of a title: that wakes pages alone."""
    prompt = start_prompt(start_conversation(ann), ann, "Go.")
    held, at = taken(prompt), place(prompt)
    assert hears(watch)
    at = append(at, record(prompt, at, said()), fence=held.fence)
    store([DraftRow(held.prompt, "1", 1, held.fence, "Half of it", 10)])
    rename(prompt.conversation, "Other")
    assert not hears(watch)
    end = Step("runtime", "action_result", {"state": "completed", "stop_reason": "text", "usage": NOTHING})
    append(at, record(prompt, at, end), fence=held.fence)
    assert hears(watch)


def test_they_hear_of_nothing_that_was_rolled_back(ann: User, watch: Watch) -> None:
    with transaction.atomic():
        start_prompt(start_conversation(ann), ann, "Go.")
        transaction.set_rollback(True)
    assert not hears(watch)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL needs no pipes")
def test_a_drain_without_a_pipe_tries_again(
    ann: User, settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so once, and looks each second meanwhile."""
    settings.AGENTSITE_DATA = tmp_path
    (blocked := tmp_path / "hints").touch()
    opened = open_work_watch()
    assert opened.wait(0) is None
    assert opened.wait(0) is None
    start_prompt(start_conversation(ann), ann, "Go.")  # and nothing fails for want of one
    assert [record.message for record in caplog.records] == [
        "commits are not heard of; looking once a second until they are"
    ]
    blocked.unlink()
    notice = opened.wait(0)
    assert notice
    assert notice.concerns_drains
    start_prompt(start_conversation(ann), ann, "Go.")
    assert hears(opened)
    opened.close()
