"""Triggers in the admin: listed, with the history of each; paused, resumed and deleted by who may."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from conversations.models import Event, FiringState, Prompt, Trigger
from conversations.notifications.webhooks import managing as webhooks
from conversations.prompts import killswitch
from conversations.triggers import managing
from tests.conversations.admin.test_grants import client
from tests.conversations.triggers.conftest import StillClock, clock

__all__ = ["clock"]

pytestmark = pytest.mark.django_db

LIST = "/admin/conversations/trigger/"


def test_staff_see_what_starts_by_itself_and_what_came_of_it(ann: User, kim: User, clock: StillClock) -> None:
    trigger = clock.every(ann, text="look at <b>the logs</b>", name="Logs")
    killswitch.turn_on(None, "Maintenance.")
    clock.passes(minutes=5)
    killswitch.turn_off(None)
    clock.passes(minutes=5)
    clock.passes(minutes=15)
    sees = client(kim, "view_trigger", "view_prompt")
    listed = sees.get(LIST).content.decode()
    for words in (
        "Logs",
        "The agent: look at &lt;b&gt;the logs",
        "every 5 minutes",
        "Mon 2 Mar 2026, 13:30",
        "Left out",
    ):
        assert words in listed, words
    page = sees.get(f"{LIST}{trigger.pk}/change/").content.decode()
    for words in ("Missed, 2 times", "All work was stopped", "Mon 2 Mar 2026, 13:05", "had not ended"):
        assert words in page, words
    assert f'href="/admin/conversations/prompt/{Prompt.objects.get().pk}/change/"' in page
    assert "<b>the logs" not in listed + page


def test_a_long_history_is_shown_as_far_as_it_fits(ann: User, kim: User, clock: StillClock) -> None:
    trigger = clock.every(ann)
    for number in range(102):
        trigger.firings.create(state=FiringState.MISSED, reason=f"Reason {number}.")
    page = client(kim, "view_trigger").get(f"{LIST}{trigger.pk}/change/").content.decode()
    assert ("The last 100 of 102." in page, "Reason 2." in page, "Reason 1." in page) == (True, True, False)


def test_the_list_is_filtered_by_state(ann: User, kim: User, clock: StillClock) -> None:
    paused = clock.every(ann, name="Asleep")
    clock.every(ann, name="Awake")
    managing.pause(paused)
    sees = client(kim, "view_trigger")
    for state, shown in (("paused", (True, False)), ("on", (False, True)), ("nonsense", (True, True))):
        page = sees.get(f"{LIST}?state={state}").content.decode()
        assert ("Asleep" in page, "Awake" in page) == shown, state


def test_who_may_change_them_pauses_and_resumes(ann: User, kim: User, clock: StillClock) -> None:
    trigger = clock.every(ann)
    pause, resume = ({"action": action, "_selected_action": [trigger.pk]} for action in ("pause", "resume"))
    client(kim, "view_trigger").post(LIST, pause)
    assert Trigger.objects.get().state == "on", "who may only see them pauses none"
    may = client(kim, "change_trigger")
    assert "Paused 1 trigger." in may.post(LIST, pause, follow=True).content.decode()
    assert (Trigger.objects.get().state, clock.passes(minutes=20)) == ("paused", 0)
    assert "Resumed 1 trigger." in may.post(LIST, resume, follow=True).content.decode()
    assert (Trigger.objects.get().state, clock.passes(minutes=5)) == ("on", 1)


def test_who_may_delete_them_does_so_after_a_question(ann: User, kim: User, clock: StillClock) -> None:
    trigger = clock.every(ann)
    clock.passes(minutes=5)
    webhook, _ = webhooks.make("https://1.1.1.1/hook")
    webhook.deliveries.create(event=Event.TRIGGER, message_id="m", body="{}", trigger=trigger)
    address, chosen = f"{LIST}{trigger.pk}/delete/", {"action": "delete_selected", "_selected_action": [trigger.pk]}
    client(kim, "view_trigger", "change_trigger").post(LIST, {**chosen, "post": "yes"})
    assert client(kim).post(address, {"post": "yes"}).status_code == 403
    may = client(kim, "delete_trigger")
    assert may.get(address).status_code == 200
    asked = may.post(LIST, chosen).content.decode()
    assert ("Are you sure" in asked, Trigger.objects.exists()) == (True, True)
    may.post(LIST, {**chosen, "post": "yes"})
    assert (Trigger.objects.exists(), Prompt.objects.count()) == (False, 1)
