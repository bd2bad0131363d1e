"""Firing: what becomes of each time that a trigger is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User

from agents.engine.root import site_of
from agents.engine.tools.plugin import Plugin, Round
from agents.plugins.triggers.schedule import Schedule
from conversations.backup.after_restore import make_safe
from conversations.erasure.conversations import erase
from conversations.erasure.people import erase_user
from conversations.erasure.steps import redact
from conversations.ledger.reading import read_steps
from conversations.models import (
    Conversation,
    Firing,
    FiringState,
    Notice,
    NoticeKind,
    Origin,
    Overlap,
    Prompt,
    Quota,
    State,
    Trigger,
)
from conversations.prompts import killswitch
from conversations.prompts.start import cancel_prompt, start_conversation, start_prompt
from conversations.prompts.startable import InvalidInput
from conversations.triggers import firing, managing
from conversations.triggers.firing import fire_due, fire_if_due, next_look
from conversations.triggers.managing import NewTrigger, create
from conversations.verification.stored import verify
from tests.conversations.recorded import ONE_GATE, Site
from tests.conversations.triggers.conftest import StillClock
from tests.engine import cast
from tests.engine.support import says

pytestmark = pytest.mark.django_db


def history(trigger: Trigger) -> list[tuple[str, int]]:
    """What became of its firings, oldest first: the state, and for how many times it stands."""
    return list(trigger.firings.order_by("pk").values_list("state", "times"))


def fresh(trigger: Trigger) -> Trigger:
    return Trigger.objects.get(pk=trigger.pk)


def once(clock: StillClock, owner: User, minutes: float = 1, **more: Any) -> Trigger:
    at = clock.time + timedelta(minutes=minutes)
    return create(owner, NewTrigger(Schedule("Europe/Berlin", at=at), "look at the logs"), **more)


def test_plugins_are_told_what_the_trigger_says_as_what_a_person_says(
    ann: User, site: Site, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs: list[str | None] = []

    class Noting(Plugin):
        name = "noting"

        async def prepare(self, round: Round) -> None:
            inputs.append(round.input)

    registry, _ = cast.site([says("Looked."), says("Hello.")], plugins=[Noting()])
    monkeypatch.setattr("agents.registry.policies", lambda: registry)
    chat = start_conversation(ann, "Logs")
    once(clock, ann, conversation=chat)
    clock.passes(minutes=1)
    site.works()
    start_prompt(chat, ann, "Hi.")
    site.works()
    assert inputs == ["look at the logs", "Hi."]


def test_a_single_one_fires_once_into_its_chat(ann: User, site: Site, clock: StillClock) -> None:
    """Nobody spoke: its turn has no message, and the system asked for it."""
    chat = start_conversation(ann, "Logs")
    trigger = once(clock, ann, conversation=chat)
    assert (clock.passes(seconds=59), next_look()) == (0, 1.0)
    assert [clock.passes(seconds=1), clock.passes(days=1)] == [1, 0]
    prompt = Prompt.objects.get(conversation=chat)
    call = read_steps(chat.pk, prompt.pk)[0]
    assert (prompt.origin, prompt.input, prompt.state) == (Origin.TRIGGER, None, State.QUEUED)
    assert (prompt.attended, prompt.starter) == (False, None)
    assert (call.actor, call.payload["origin"], call.payload["payload"]["text"]) == ("system", "trigger", None)
    assert (site_of(call)["trigger"], site_of(call)["reminder"]) == (trigger.pk, "look at the logs")
    assert (history(trigger), fresh(trigger).state) == ([("started", 1)], "over")
    site.speaks(says("Look at the logs!"))
    site.works()
    assert [str(problem) for problem in verify(chat.pk).problems] == []


def test_one_that_repeats_has_a_conversation_of_its_own(ann: User, site: Site, clock: StillClock) -> None:
    trigger = clock.every(ann)
    site.speaks(*[says("Done.")] * 3)
    for _ in range(3):
        assert clock.passes(minutes=5) == 1
        site.works()
    own = Conversation.objects.get()
    assert (own.owner, own.title, fresh(trigger).conversation) == (ann, "look at the logs", own)
    assert [prompt.state for prompt in own.prompts.all()] == [State.COMPLETED] * 3
    assert history(trigger) == [("started", 1)] * 3


def test_a_persons_message_goes_first(ann: User, site: Site, clock: StillClock) -> None:
    """What a trigger starts waits until the conversation's slot is free."""
    chat = start_conversation(ann)
    said = start_prompt(chat, ann, "Hello.")
    once(clock, ann, conversation=chat)
    assert clock.passes(minutes=1) == 1
    chat.refresh_from_db()
    assert chat.active_prompt == said
    site.speaks(says("Hello!"), says("Look at the logs!"))
    site.works()
    assert list(chat.prompts.order_by("ended_at").values_list("origin", "state")) == [
        ("user", "completed"),
        ("trigger", "completed"),
    ]


def test_an_archived_chat_comes_back(ann: User, clock: StillClock) -> None:
    chat = start_conversation(ann)
    once(clock, ann, conversation=chat)
    Conversation.objects.update(archived_at=clock.time)
    assert clock.passes(minutes=1) == 1
    chat.refresh_from_db()
    assert chat.archived_at is None


def test_twenty_firings_into_a_turn_that_waits_leave_one_card(ann: User, site: Site, clock: StillClock) -> None:
    trigger = clock.every(ann)
    site.speaks(*ONE_GATE)
    assert clock.passes(minutes=5) == 1
    site.works()
    assert [clock.passes(minutes=5) for _ in range(20)] == [0] * 20
    waiting = Prompt.objects.get()
    assert (waiting.state, waiting.firings.filter(state=FiringState.FOLDED).count()) == (State.WAITING, 20)
    site.approves(waiting, ann)
    site.works()
    assert clock.passes(minutes=5) == 1
    assert history(trigger) == [("started", 1), *[("folded", 1)] * 20, ("started", 1)]


def test_a_turn_that_runs_lets_the_next_firing_be_left_out(ann: User, clock: StillClock) -> None:
    trigger = clock.every(ann)
    assert [clock.passes(minutes=5) for _ in range(3)] == [1, 0, 0]
    assert history(trigger) == [("started", 1), ("skipped", 1), ("skipped", 1)]
    assert trigger.firings.all()[0].reason == "The turn that it started before had not ended."


def test_firings_wait_in_their_order_if_that_was_chosen(ann: User, site: Site, clock: StillClock) -> None:
    trigger = clock.every(ann, overlap=Overlap.QUEUE)
    assert [clock.passes(minutes=5) for _ in range(4)] == [1, 0, 0, 0]
    assert (history(trigger), next_look()) == ([("started", 1), *[("queued", 1)] * 3], 1.0)
    for left in (2, 1, 0):
        site.speaks(says("Done."))
        site.works()
        assert [fire_due(), fire_due()] == [1, 0]
        assert trigger.firings.filter(state=FiringState.QUEUED).count() == left
    started = list(trigger.firings.order_by("pk").values_list("prompt", flat=True))
    assert (started, len(started)) == (sorted(started), 4)


def test_those_that_wait_for_long_do_not_keep_others_waiting(
    ann: User, bob: User, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firing, "AT_ONCE", 2)
    *_, free = [clock.every(owner, overlap=Overlap.QUEUE) for owner in (ann, ann, bob)]
    assert [clock.passes(minutes=5), clock.passes()] == [2, 1]
    assert [clock.passes(minutes=5), clock.passes()] == [0, 0]
    assert history(free) == [("started", 1), ("queued", 1)]
    running = free.firings.order_by("pk")[0].prompt
    assert running
    cancel_prompt(running.pk, bob)
    assert (fire_due(), history(free)) == (1, [("started", 1), ("started", 1)])


def test_after_an_outage_one_counts_and_the_others_are_missed(ann: User, clock: StillClock) -> None:
    trigger = clock.every(ann)
    assert [clock.passes(hours=4, seconds=30), clock.passes(seconds=1)] == [1, 0]
    assert history(trigger) == [("missed", 47), ("started", 1)]
    assert (fresh(trigger).slot, clock.passes(minutes=5)) == (datetime(2026, 3, 2, 16, 5, tzinfo=UTC), 0)
    slots = trigger.firings.order_by("pk").values_list("slot", flat=True)
    assert [f"{slot:%H:%M}" for slot in slots] == ["12:05", "16:00", "16:05"]


def test_a_clock_that_is_set_back_repeats_nothing(ann: User, site: Site, clock: StillClock) -> None:
    trigger = clock.cron(ann, "0 * * * *")
    site.speaks(says("Done."))
    assert clock.passes(hours=1) == 1
    site.works()
    clock.time -= timedelta(hours=1)
    managing.change(fresh(trigger), NewTrigger(trigger.schedule, "look again"))
    assert [clock.passes(minutes=30), clock.passes(minutes=30), clock.passes(minutes=30)] == [0, 0, 0]
    site.speaks(says("Done."))
    assert clock.passes(minutes=30) == 1
    assert history(trigger) == [("started", 1)] * 2


NIGHTS = [
    ("Europe/Berlin 30 2 * * *", (2026, 3, 28, 12), ["29T03:00:00+02:00", "30T02:30:00+02:00"]),
    ("Europe/Berlin 30 2 * * *", (2026, 10, 24, 12), ["25T02:30:00+02:00", "26T02:30:00+01:00"]),
    ("America/New_York 30 2 * * *", (2026, 3, 7, 20), ["08T03:00:00-04:00", "09T02:30:00-04:00"]),
    ("America/New_York 30 1 * * *", (2026, 10, 31, 20), ["01T01:30:00-04:00", "02T01:30:00-05:00"]),
    ("Australia/Lord_Howe 15 2 * * *", (2026, 10, 3, 2), ["04T02:30:00+11:00", "05T02:15:00+11:00"]),
    ("Australia/Lord_Howe 45 1 * * *", (2026, 4, 4, 2), ["05T01:45:00+11:00", "06T01:45:00+10:30"]),
]


@pytest.mark.parametrize(("which", "before", "times"), NIGHTS)
def test_the_nights_in_which_clocks_change(
    ann: User, clock: StillClock, which: str, before: tuple[int, ...], times: list[str]
) -> None:
    """Looked at every minute, each night has one firing."""
    zone, _, expression = which.partition(" ")
    clock.at(*before)
    trigger = clock.cron(ann, expression, zone)
    for _ in range(2 * 24 * 12):
        if clock.passes(minutes=5):
            Prompt.objects.update(state=State.COMPLETED)  # whatever its turn does
    fired = trigger.firings.order_by("pk")
    assert [f.slot.astimezone(ZoneInfo(zone)).isoformat()[8:] for f in fired if f.slot] == times
    assert {firing.state for firing in fired} == {"started"}


def test_a_zone_that_is_changed_while_one_is_due_loses_nothing(ann: User, clock: StillClock) -> None:
    trigger = clock.cron(ann, "0 14 * * *", "Europe/Berlin")
    clock.time = datetime(2026, 3, 2, 13, 0, 1, tzinfo=UTC)
    schedule = Schedule("America/New_York", expression="0 14 * * *")
    managing.change(trigger, NewTrigger(schedule, "look at the logs"))
    assert (history(trigger), fresh(trigger).slot) == ([("started", 1)], datetime(2026, 3, 2, 19, tzinfo=UTC))


def test_a_hundred_that_are_due_at_once_all_fire(ann: User, clock: StillClock, settings: Any) -> None:
    settings.AGENTSITE_TRIGGERS_A_PERSON = 200
    made = [clock.cron(ann, "0 13 * * *", "UTC") for _ in range(101)]
    assert [clock.passes(hours=1), clock.passes(seconds=1), clock.passes(seconds=1)] == [100, 1, 0]
    assert Firing.objects.filter(state=FiringState.STARTED, trigger__in=made).count() == 101


def test_those_that_repeat_are_spread_but_single_ones_are_in_time(ann: User, clock: StillClock, settings: Any) -> None:
    settings.AGENTSITE_TRIGGER_SPREAD_SECONDS = 60
    made = [fresh(clock.cron(ann, "0 13 * * *", "UTC")) for _ in range(19)]
    late = {(trigger.next_at - trigger.slot).total_seconds() for trigger in made if trigger.next_at and trigger.slot}
    assert 10 < len(late) < 20
    assert all(0 <= seconds < 60 for seconds in late)
    single = fresh(once(clock, ann))
    assert single.next_at == single.slot


@pytest.mark.parametrize(
    ("wrong", "state", "reason"),
    [
        (lambda ann: User.objects.filter(pk=ann.pk).update(is_active=False), "failed", "The account was deactivated"),
        (lambda ann: killswitch.turn_on(None, "Maintenance."), "missed", "All work was stopped"),
        (lambda ann: Quota.objects.create(user=ann, tokens_a_day=0), "started", ""),
    ],
)
def test_what_held_when_it_was_made_is_looked_at_when_it_fires(
    ann: User, clock: StillClock, wrong: Any, state: str, reason: str
) -> None:
    trigger = clock.every(ann)
    wrong(ann)
    clock.passes(minutes=5)
    firing = trigger.firings.get()
    assert (firing.state, firing.reason.startswith(reason)) == (state, True), firing.reason
    assert Prompt.objects.count() == (state == "started")


def test_tokens_that_are_used_up_start_nothing(ann: User, clock: StillClock, monkeypatch: pytest.MonkeyPatch) -> None:
    Quota.objects.create(user=ann, tokens_a_day=10)
    monkeypatch.setattr("conversations.usage.quotas.tokens_today", lambda user: 10)
    trigger = clock.every(ann)
    clock.passes(minutes=5)
    assert (trigger.firings.get().state, "10 tokens were used" in trigger.firings.get().reason) == ("failed", True)


def test_failures_in_a_row_switch_it_off(ann: User, clock: StillClock) -> None:
    trigger = clock.every(ann)
    for state in (*[State.FAILED] * 4, State.COMPLETED, *[State.FAILED] * 5):
        assert clock.passes(minutes=5) == 1
        Prompt.objects.update(state=state)
    assert [clock.passes(minutes=5), clock.passes(minutes=5)] == [0, 0]
    off = fresh(trigger)
    assert (off.state, off.off_reason, len(history(off))) == ("off", "It failed 5 times in a row.", 10)
    managing.resume(off)
    assert [fresh(trigger).state, clock.passes(minutes=5)] == ["on", 1]


def test_a_turn_that_a_person_stops_is_no_failure(ann: User, clock: StillClock) -> None:
    trigger = clock.every(ann)
    for _ in range(6):
        assert clock.passes(minutes=5) == 1
        cancel_prompt(Prompt.objects.latest("pk").pk, ann)
    assert fresh(trigger).failures == 0


def test_a_paused_one_fires_only_by_hand(ann: User, clock: StillClock) -> None:
    trigger = clock.every(ann)
    managing.pause(trigger)
    assert (clock.passes(minutes=20), history(trigger)) == (0, [])
    by_hand = fire_if_due(trigger.pk, by_hand=True)
    assert by_hand
    assert (by_hand.state, by_hand.slot) == ("started", None)
    managing.resume(fresh(trigger))
    assert (fresh(trigger).slot, history(trigger)) == (datetime(2026, 3, 2, 12, 25, tzinfo=UTC), [("started", 1)])


def test_two_schedulers_fire_one_slot_once(ann: User, clock: StillClock) -> None:
    """The second finds that it is not due any more: what the first looked up is old."""
    trigger = clock.every(ann)
    clock.time += timedelta(minutes=5)
    assert [bool(fire_if_due(trigger.pk)), bool(fire_if_due(trigger.pk))] == [True, False]


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        (Schedule("Europe/Berlin", expression="0 0 31 2 *"), "expression"),
        (Schedule("Europe/Berlin", expression="* * * * *"), "expression"),
        (Schedule("Europe/Berlin", expression="0 0 9 * * 1"), "expression"),
        (Schedule("Europe/Berlin", expression="x" * 200), "expression"),
        (Schedule("Europe/Nowhere", expression="0 9 * * *"), "zone"),
        (Schedule("../../etc/passwd", expression="0 9 * * *"), "zone"),
        (Schedule("Europe/Berlin", at=datetime(2026, 3, 2, 11, tzinfo=UTC)), "at"),
        (Schedule("America/New_York", at=datetime(9999, 12, 31, 23, tzinfo=ZoneInfo("America/New_York"))), "at"),
        (Schedule("Asia/Tokyo", at=datetime(1, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo"))), "at"),
        (Schedule("UTC", seconds=2**40, since=datetime(2026, 3, 2, 11, tzinfo=UTC)), "seconds"),
        (Schedule("Europe/Berlin", seconds=60, since=datetime(2026, 3, 2, 11, tzinfo=UTC)), "seconds"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(ann: User, clock: StillClock, schedule: Schedule, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        create(ann, NewTrigger(schedule, "look"))
    assert (list(refused.value.fields), Trigger.objects.count()) == ([field], 0)


def test_a_person_has_so_many(ann: User, bob: User, clock: StillClock, settings: Any) -> None:
    """Those that are over do not count."""
    settings.AGENTSITE_TRIGGERS_A_PERSON = 2
    once(clock, ann)
    clock.every(ann)
    with pytest.raises(managing.TooMany, match="You have 2 triggers"):
        clock.every(ann)
    clock.every(bob)
    clock.passes(minutes=1)
    clock.every(ann)


def test_one_that_is_over_counts_again_when_it_gets_a_new_time(ann: User, clock: StillClock, settings: Any) -> None:
    settings.AGENTSITE_TRIGGERS_A_PERSON = 1
    over = once(clock, ann)
    assert clock.passes(minutes=2) == 1
    again = NewTrigger(Schedule("Europe/Berlin", expression="@daily"), "look at the logs")
    other = create(ann, again)
    with pytest.raises(managing.TooMany, match="You have 1 trigger"):
        managing.change(fresh(over), again)
    assert fresh(over).state == "over"
    managing.delete(other)
    assert managing.change(fresh(over), again).state == "on"


def test_the_same_request_makes_one(ann: User, bob: User, clock: StillClock) -> None:
    made = {once(clock, ann, key="k").pk, once(clock, ann, key="k").pk}
    assert (len(made), once(clock, bob, key="k").owner) == (1, bob)


def test_its_conversation_may_go(ann: User, site: Site, clock: StillClock) -> None:
    """The next turn has another one; the history stays."""
    trigger = clock.every(ann)
    site.speaks(says("Done."), says("Done."))
    clock.passes(minutes=5)
    site.works()
    erase(Conversation.objects.get(), ann)
    assert clock.passes(minutes=5) == 1
    assert (history(trigger), fresh(trigger).conversation) == ([("started", 1)] * 2, Conversation.objects.get())


def test_they_are_paused_after_a_restore(ann: User, clock: StillClock) -> None:
    """What they started since the backup is unknown, and the other site may still run."""
    trigger = clock.every(ann)
    make_safe("yesterday")
    assert (fresh(trigger).state, clock.passes(minutes=5)) == ("paused", 0)


def test_they_go_with_their_person(ann: User, bob: User, clock: StillClock) -> None:
    clock.every(ann)
    theirs = clock.every(bob)
    erase_user(ann, bob)
    assert list(Trigger.objects.all()) == [theirs]


def test_a_person_is_told_of_one_that_was_switched_off(ann: User, clock: StillClock) -> None:
    trigger = clock.every(ann)
    Trigger.objects.update(failures=4)
    clock.passes(minutes=5)
    Prompt.objects.update(state=State.FAILED)
    fire_due()
    notice = Notice.objects.get(user=ann, kind=NoticeKind.TRIGGER)
    assert (notice.title, notice.link) == (
        "look at the logs: it failed 5 times in a row",
        trigger.get_absolute_url(),
    )


def test_what_raises_anything_when_it_starts_is_a_failure(
    ann: User, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not looked at again and again, and holds up no other."""

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("conversations.triggers.firing.start_prompt", broken)
    trigger = clock.every(ann)
    assert (clock.passes(minutes=5), next_look()) == (0, 300)
    assert (trigger.firings.get().state, "ZeroDivisionError" in trigger.firings.get().reason) == ("failed", True)


def test_so_many_wait_and_no_more(ann: User, clock: StillClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conversations.triggers.firing.QUEUED_MOST", 2)
    trigger = clock.every(ann, overlap=Overlap.QUEUE)
    for _ in range(5):
        clock.passes(minutes=5)
    assert [state for state, _ in history(trigger)] == ["started", "queued", "queued", "skipped", "skipped"]


def test_what_it_reminds_of_can_be_redacted(ann: User, site: Site, clock: StillClock) -> None:
    """It is gone from the turn's row too, and the ledger still verifies."""
    trigger = clock.every(ann)
    clock.passes(minutes=5)
    site.speaks(says("Done."))
    site.works()
    chat = Conversation.objects.get()
    redact(chat, [1], ann, "private")
    prompt = Prompt.objects.get()
    chat.refresh_from_db()
    assert (prompt.reminder, prompt.trigger, chat.title) == ("[redacted]", trigger, "[redacted]")
    assert [str(problem) for problem in verify(chat.pk).problems] == []


def test_a_clock_that_was_a_year_ahead_silences_nothing(ann: User, clock: StillClock) -> None:
    """What fired then does not fire again; all other times do, and no later than they are due."""
    trigger = clock.every(ann, minutes=60)
    before = clock.time
    clock.passes(days=365)
    ahead = trigger.firings.filter(state=FiringState.STARTED).get().slot
    clock.time = before
    managing.change(fresh(trigger), NewTrigger.of(fresh(trigger)))
    assert fresh(trigger).slot == before + timedelta(hours=2), "the first of those that it missed is on record"
    assert clock.passes(hours=2) == 0  # its turn still runs
    assert trigger.firings.order_by("-pk")[0].slot == clock.time
    assert trigger.firings.filter(slot=ahead).count() == 1


def test_one_that_cannot_fire_holds_up_nothing(ann: User, bob: User, clock: StillClock) -> None:
    """Such as one whose zone has gone from the system: it is looked at again, but not all the time."""
    broken, other = clock.cron(ann, "*/5 * * * *"), clock.every(bob)
    Trigger.objects.filter(pk=broken.pk).update(zone="Mars/Olympus")
    assert clock.passes(minutes=5) == 1
    assert (history(broken), history(other)) == ([], [("started", 1)])
    assert next_look() == 60
    Trigger.objects.filter(pk=broken.pk).update(zone="Europe/Berlin")
    assert (clock.passes(seconds=60), history(broken)) == (1, [("started", 1)])


def test_a_queue_behind_a_decision_is_not_looked_at_all_the_time(ann: User, site: Site, clock: StillClock) -> None:
    trigger = clock.every(ann, overlap=Overlap.QUEUE)
    clock.passes(minutes=5)
    clock.passes(minutes=5)
    assert next_look() == 1
    Prompt.objects.filter(trigger=trigger).update(state=State.WAITING)
    assert next_look() == 300
