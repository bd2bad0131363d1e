"""The pages of triggers: making one with a preview, its history, and its buttons."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents.plugins.triggers.schedule import Schedule
from conversations.models import Prompt, Trigger
from conversations.triggers.managing import NewTrigger, create
from tests.conversations.recorded import ONE_GATE, Site
from tests.conversations.triggers.conftest import StillClock
from tests.workflows import shop

pytestmark = pytest.mark.django_db
ORDER = shop.order.policy_name

WEEKDAYS = {"text": "list the files", "when": "weekdays", "time": "09:00", "zone": "Europe/Berlin", "overlap": "skip"}


@pytest.fixture
def client(ann: User) -> Client:
    signed_in = Client()
    signed_in.force_login(ann)
    return signed_in


def posted(client: Client, **typed: Any) -> Any:
    return client.post(reverse("triggers"), {**WEEKDAYS, **typed}, follow=True)


@pytest.mark.parametrize(
    ("typed", "when"),
    [
        ({}, "every weekday at 09:00 Europe/Berlin"),
        ({"when": "daily", "time": "02:30"}, "every day at 02:30 Europe/Berlin"),
        ({"when": "weekly", "weekday": "0"}, "every Sunday at 09:00 Europe/Berlin"),
        ({"when": "monthly", "day": "31"}, "on day 31 of every month at 09:00 Europe/Berlin"),
        ({"when": "every", "minutes": "90"}, "every 90 minutes"),
        ({"when": "cron", "expression": "@daily"}, "every day at 00:00 Europe/Berlin"),
        ({"when": "once", "date": "2026-03-03"}, "once, on Tue 3 Mar 2026, 09:00 Europe/Berlin"),
    ],
)
def test_each_kind_of_time(client: Client, clock: StillClock, typed: dict[str, str], when: str) -> None:
    page = posted(client, **typed)
    assert (Trigger.objects.get().text, f"The trigger is set: {when}." in page.text) == ("list the files", True)
    assert "list the files" in client.get(Trigger.objects.get().get_absolute_url()).text


def test_the_next_times_are_shown_before_it_is_set(client: Client, clock: StillClock) -> None:
    """With what the night does in which clocks go forward; nothing is stored."""
    clock.at(2026, 3, 27, 12)
    page = posted(client, when="daily", time="02:30", preview="1").text
    assert "Sun 29 Mar 2026, 03:00" in page
    assert "The clocks go forward: there is no 02:30 that night." in page
    assert not Trigger.objects.exists()


@pytest.mark.parametrize(
    ("typed", "status", "said"),
    [
        ({"text": " "}, 400, "This field is required."),
        ({"time": ""}, 400, "This is needed."),
        ({"when": "once", "date": "2026-03-01"}, 400, "Choose a time to come."),
        ({"when": "every", "minutes": "1"}, 400, "That is more often than every 5 minutes"),
        ({"when": "cron", "expression": "0 0 31 2 *"}, 400, "This cron expression is not valid"),
        ({"zone": "Europe/Nowhere"}, 400, "Select a valid choice."),
    ],
)
def test_what_cannot_be_is_said_at_its_field(
    client: Client, clock: StillClock, typed: dict[str, str], status: int, said: str
) -> None:
    """What was typed is still there."""
    page = posted(client, **typed)
    assert (page.status_code, said in page.text, Trigger.objects.exists()) == (status, True, False)
    assert typed.get("text") or "list the files</textarea>" in page.text


def test_what_the_page_does_not_show_is_not_refused(client: Client, clock: StillClock) -> None:
    page = posted(client, when="daily", day="99", minutes="many", date="tomorrow")
    assert "The trigger is set: every day at 09:00" in page.text


def test_one_too_many_is_refused(client: Client, clock: StillClock, settings: Any) -> None:
    settings.AGENTSITE_TRIGGERS_A_PERSON = 1
    posted(client)
    page = posted(client)
    assert (page.status_code, "You have 1 trigger, which" in page.text, Trigger.objects.count()) == (409, True, 1)


def test_its_buttons(client: Client, clock: StillClock) -> None:
    posted(client, when="every", minutes="5")
    trigger = Trigger.objects.get()
    states = []
    for name in ("pause-trigger", "run-trigger", "resume-trigger", "delete-trigger"):
        assert client.get(reverse(name, args=[trigger.pk])).status_code == 405, "a link decides nothing"
        page = client.post(reverse(name, args=[trigger.pk]), follow=True)
        found = Trigger.objects.filter(pk=trigger.pk).first()
        states.append((found.state if found else "gone", "Started." in page.text))
    assert states == [("paused", False), ("paused", True), ("on", False), ("gone", False)]
    assert Prompt.objects.count() == 1


@pytest.mark.parametrize(
    "typed",
    [
        {"when": "daily", "time": "02:30"},
        {"when": "weekdays"},
        {"when": "weekly", "weekday": "0", "overlap": "queue"},
        {"when": "monthly", "day": "31"},
        {"when": "every", "minutes": "90"},
        {"when": "cron", "expression": "*/20 8-17 * * *"},
        {"when": "once", "date": "2026-03-03"},
    ],
)
def test_its_form_shows_it_as_it_is(client: Client, clock: StillClock, typed: dict[str, str]) -> None:
    """Saved as it stands, it is the same, and due at the same times."""
    posted(client, **typed)
    before = Trigger.objects.values().get()
    clock.time += timedelta(minutes=7)
    address = reverse("change-trigger", args=[before["id"]])
    form = client.get(address).context["form"]
    shown = {name: str(form[name].value() or "") for name in form.fields}
    assert shown.items() >= {**typed, "text": "list the files", "zone": "Europe/Berlin"}.items() - {("time", "02:30")}
    page = client.post(address, shown, follow=True)
    assert "Changed: " in page.text
    assert Trigger.objects.values().get() == before


def test_it_is_changed(client: Client, clock: StillClock) -> None:
    posted(client)
    trigger = Trigger.objects.get()
    address = reverse("change-trigger", args=[trigger.pk])
    preview = client.post(address, {**WEEKDAYS, "when": "daily", "text": "tidy up", "preview": "1"}).text
    assert ("Tue 3 Mar 2026, 09:00" in preview, Trigger.objects.get().text) == (True, "list the files")
    page = client.post(address, {**WEEKDAYS, "when": "daily", "text": "tidy up"}, follow=True).text
    trigger.refresh_from_db()
    assert ("Changed: every day at 09:00" in page, trigger.text, trigger.name) == (True, "tidy up", "tidy up")
    wrong = client.post(address, {**WEEKDAYS, "when": "cron", "expression": "0 0 31 2 *"})
    assert (wrong.status_code, "This cron expression is not valid" in wrong.text) == (400, True)


def test_of_one_that_starts_a_workflow_the_time_is_changed(
    client: Client, ann: User, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop.registered(monkeypatch, shop.order):
        schedule = Schedule("Europe/Berlin", expression="0 9 * * *")
        trigger = create(ann, NewTrigger(schedule, policy=ORDER, input={"item": "paper"}))
        address = reverse("change-trigger", args=[trigger.pk])
        assert 'name="text"' not in client.get(address).text
        client.post(address, {**WEEKDAYS, "time": "10:00"})
        trigger.refresh_from_db()
        assert (trigger.expression, trigger.input, trigger.policy) == ("0 10 * * 1-5", {"item": "paper"}, ORDER)


def test_the_history_says_what_became_of_each(client: Client, clock: StillClock) -> None:
    posted(client, when="every", minutes="5")
    clock.passes(minutes=21)
    clock.passes(minutes=5)
    page = " ".join(client.get(Trigger.objects.get().get_absolute_url()).text.split())
    for words in ("Mon 2 Mar 2026, 13:05 and 2 more", "Missed", "Started", "The turn that it started before had not"):
        assert words in page
    assert "Next Mon 2 Mar 2026" in " ".join(client.get(reverse("triggers")).text.split())


def test_others_see_none_of_it(client: Client, bob: User, clock: StillClock) -> None:
    theirs = clock.every(bob)
    clock.time += timedelta(minutes=1)
    assert client.get(theirs.get_absolute_url()).status_code == 404
    assert client.post(reverse("delete-trigger", args=[theirs.pk])).status_code == 404
    assert client.post(reverse("change-trigger", args=[theirs.pk]), WEEKDAYS).status_code == 404
    assert "look at the logs" not in client.get(reverse("triggers")).text


def test_a_turn_that_waits_says_how_often_it_was_due_again(
    client: Client, ann: User, site: Site, clock: StillClock
) -> None:
    trigger = clock.every(ann)
    site.speaks(*ONE_GATE)
    clock.passes(minutes=5)
    site.works()
    for _ in range(20):
        clock.passes(minutes=5)
    waiting = Prompt.objects.get()
    page = client.get(waiting.conversation.get_absolute_url()).text
    assert page.count("Due 20 more times while this turn waited.") == 1
    assert f'href="{trigger.get_absolute_url()}">Reminder</a>' in page
    assert "Reject and go on" in page


def test_the_list_takes_as_many_queries_for_many(
    client: Client, ann: User, clock: StillClock, django_assert_num_queries: Any
) -> None:
    clock.every(ann)
    client.get(reverse("triggers"))
    with django_assert_num_queries(24) as few:  # one for each workflow: whether they may start it
        client.get(reverse("triggers"))
    for _ in range(10):
        clock.every(ann)
    clock.passes(minutes=5)
    with django_assert_num_queries(len(few)):
        client.get(reverse("triggers"))
