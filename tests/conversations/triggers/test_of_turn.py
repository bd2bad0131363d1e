"""The triggers that an agent makes, lists and deletes for the person it works for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.plugins.triggers.tools import create, delete, list_triggers
from conversations.erasure.conversations import erase
from conversations.models import Account, Output, Prompt, Trigger
from tests.conversations.recorded import Site, pending
from tests.conversations.triggers.conftest import StillClock
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _tools(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [create, list_triggers, delete]
    monkeypatch.setattr(site.world, "tools", lambda: tools)


def asked(site: Site, owner: User, **input: Any) -> tuple[Prompt, Output | None]:
    """Let the agent ask for a trigger; the card that waits for a decision, if any."""
    prompt = site.runs(owner, says("A trigger.", call("trigger.create", **input)), says("Done."))
    return prompt, next(iter(pending(prompt)), None)


def result(prompt: Prompt) -> str:
    return str(Output.objects.get(prompt=prompt, type="tool").entry())


def test_it_is_asked_for_in_words_and_dates(ann: User, site: Site) -> None:
    Account.objects.create(user=ann, zone="Asia/Tokyo")
    prompt, card = asked(site, ann, text="list the files", cron="0 9 * * 1-5")
    assert card
    assert card.reason.startswith("It fires every weekday at 09:00 Asia/Tokyo, next ")
    assert "In the time zone Asia/Tokyo." in str(card.data)
    assert not Trigger.objects.exists()
    site.approves(prompt, ann)
    site.works()
    made = Trigger.objects.get()
    assert (made.owner, made.zone, made.expression) == (ann, "Asia/Tokyo", "0 9 * * 1-5")
    assert (made.asked_in, made.conversation) == (prompt.conversation, None)


def test_a_single_one_counts_from_the_approval_and_fires_here(ann: User, site: Site, clock: StillClock) -> None:
    clock.time = datetime.now(UTC)
    prompt, card = asked(site, ann, text="look at the logs", in_minutes=1)
    assert card
    assert card.reason == "It fires once, one minute after you approve."
    site.approves(prompt, ann)
    site.works()
    made = Trigger.objects.get()
    assert made.at
    assert 50 < (made.at - clock.time).total_seconds() < 120
    assert (made.conversation, clock.passes(minutes=3)) == (prompt.conversation, 1)


@pytest.mark.parametrize(
    ("input", "code"),
    [
        ({"text": "x", "at": "2020-01-01T09:00"}, "That was"),
        ({"text": "x", "every_minutes": 1}, "more often than every 5 minutes"),
        ({"text": "x", "cron": "0 0 31 2 *"}, "not valid"),
        ({"text": "x"}, "exactly one"),
        ({"text": "x", "at": "soon"}, "invalid"),
        ({"text": "x", "cron": "0 9 * * *", "zone": "Europe/Nowhere"}, "no time zone"),
    ],
)
def test_what_cannot_be_asks_nobody(ann: User, site: Site, input: dict[str, Any], code: str) -> None:
    prompt, card = asked(site, ann, **input)
    assert (card, code.lower() in result(prompt).lower()) == (None, True), result(prompt)


def test_it_lists_and_deletes_only_those_of_its_person(ann: User, bob: User, site: Site, clock: StillClock) -> None:
    mine, theirs = clock.every(ann), clock.every(bob)
    prompt = site.runs(ann, says("All.", call("trigger.list")), says("Done."))
    assert f"{mine.pk}: every 5 minutes: look at the logs" in result(prompt)
    assert f"{theirs.pk}: " not in result(prompt)
    for trigger, left, told in (
        (theirs, 2, f"Delete trigger {theirs.pk}, so that it does not fire again."),
        (mine, 1, f"Delete trigger {mine.pk}. It fires every 5 minutes: look at the logs"),
    ):
        prompt = site.runs(ann, says("Away.", call("trigger.delete", id=trigger.pk)), says("Done."))
        assert [card.reason for card in pending(prompt)] == [told]
        site.approves(prompt, ann)
        site.works()
        assert Trigger.objects.count() == left


def test_it_goes_with_the_chat_that_its_words_are_from(ann: User, site: Site) -> None:
    prompt, _ = asked(site, ann, text="list the files", cron="0 9 * * 1-5")
    site.approves(prompt, ann)
    site.works()
    erase(prompt.conversation, ann)
    assert not Trigger.objects.exists()
