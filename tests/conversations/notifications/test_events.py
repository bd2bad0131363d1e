"""Turns that ended while nobody watched are noted for their owners, each once, in the ways that they chose."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from conversations.accounts.presence import record_presence
from conversations.database.sql import database_time
from conversations.models import Account, ConversationKind, Notice, NoticeChoice, NoticeKind, Prompt
from conversations.notifications import events
from conversations.notifications.choices import choose, ways_of
from conversations.notifications.events import notify_ended
from conversations.notifications.kinds import KINDS, Ways
from conversations.notifications.news import news_of
from conversations.notifications.notify import notify
from conversations.prompts.listing import mark_seen
from conversations.prompts.start import cancel_prompt, start_conversation
from tests.conversations.support import Story, asking

pytestmark = pytest.mark.django_db


def noted() -> list[tuple[str, int | None]]:
    return list(Notice.objects.order_by("pk").values_list("kind", "prompt"))


def test_the_end_of_a_turn_that_nobody_watched_is_noted_once(ann: User) -> None:
    done, failed = Story(ann).ends(), Story(ann).ends("failed", "model_error")
    assert [notify_ended(), notify_ended()] == [2, 0]
    assert noted() == [("ended", done.pk), ("failed", failed.pk)]
    ended, other = Notice.objects.order_by("pk")
    assert (ended.page, ended.mail, other.page, other.mail) == (True, False, True, True)
    assert ended.seq == done.conversation.steps.order_by("-seq").values_list("seq", flat=True)[0]


@pytest.mark.parametrize(("seconds", "told"), [(0, False), (25, False), (40, True)])
def test_whoever_had_a_page_in_view_at_the_end_is_not_told(ann: User, seconds: float, told: bool) -> None:
    record_presence(ann.pk)
    Account.objects.update(looked_at=database_time() - seconds)
    Story(ann).ends()
    notify_ended()
    assert bool(noted()) is told
    assert notify_ended() == 0


def test_what_was_stopped_hidden_or_has_not_ended_is_not_told(ann: User) -> None:
    cancel_prompt(Story(ann).prompt.pk, ann)
    Story(ann, conversation=start_conversation(ann, kind=ConversationKind.HIDDEN)).ends()
    unseen = Story(ann)
    Prompt.objects.filter(pk=unseen.prompt.pk).update(visible=False)
    unseen.ends()
    asking(ann)
    notify_ended()
    assert noted() == []


def test_a_run_of_a_workflow_is_told(ann: User) -> None:
    prompt = Story(ann, conversation=start_conversation(ann, "Summarise", kind=ConversationKind.RUN)).ends()
    notify_ended()
    assert noted() == [("ended", prompt.pk)]
    (item,) = news_of(ann).items
    assert (item.heading, item.title) == ("Ended", "Summarise")
    assert item.link == f"{prompt.conversation.get_absolute_url()}#t-{prompt.pk}"


def test_nothing_is_noted_for_whoever_wants_to_be_told_in_no_way(ann: User) -> None:
    choose(ann, {NoticeKind.ENDED: Ways(page=False, mail=False)}, None)
    Story(ann).ends()
    failed = Story(ann).ends("failed", "model_error")
    notify_ended()
    assert noted() == [("failed", failed.pk)]


def test_choices_are_of_a_person_and_a_kind(ann: User, bob: User) -> None:
    assert ways_of(ann.pk) == {kind: rule.default for kind, rule in KINDS.items()}
    choose(ann, {NoticeKind.ENDED: Ways(page=False, mail=True)}, None)
    choose(ann, {NoticeKind.ENDED: Ways(page=False, mail=True)}, None)
    assert NoticeChoice.objects.count() == 1
    assert ways_of(ann.pk)[NoticeKind.ENDED] == Ways(page=False, mail=True)
    assert ways_of(bob.pk) == {kind: rule.default for kind, rule in KINDS.items()}
    assert set(KINDS) == set(NoticeKind)


def test_anything_else_is_noted_with_its_page(ann: User) -> None:
    notify(ann, NoticeKind.TRIGGER, title="Every morning \u202e", link="/triggers/3/")
    notify(ann, NoticeKind.TRIGGER, title="Every morning", link="/triggers/3/")
    assert [(item.heading, item.link) for item in news_of(ann).items] == [
        ("Switched off", "/triggers/3/"),
        ("Switched off", "/triggers/3/"),
    ]


def test_what_was_seen_on_a_page_is_no_news(ann: User, bob: User) -> None:
    prompt = Story(ann).ends()
    notify_ended()
    assert len(news_of(ann).items) == 1
    assert news_of(bob).items == []
    prompt.conversation.refresh_from_db()
    mark_seen(prompt.conversation.pk, prompt.conversation.seq)
    assert news_of(ann).items == []


def test_looking_reads_only_what_has_just_ended(ann: User, django_assert_num_queries: Any) -> None:
    """However many turns there were."""
    for _ in range(5):
        Story(ann).ends()
    notify_ended()
    with django_assert_num_queries(1), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM conversations_prompt WHERE NOT announced AND ended_at IS NOT NULL")
        assert cursor.fetchone() == (0,)
    with django_assert_num_queries(1):
        assert notify_ended() == 0
    plan = events._unannounced().explain()
    if connection.vendor == "sqlite":  # of a table of five rows PostgreSQL reads all
        assert "prompt_unannounced" in plan


def test_one_round_looks_at_so_many(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "AT_ONCE", 2)
    for _ in range(3):
        Story(ann).ends()
    assert [notify_ended(), notify_ended(), notify_ended()] == [2, 1, 0]
    assert Notice.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_a_process_that_is_killed_half_way_notes_it_the_next_time(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_args: object, **_more: object) -> None:
        raise KeyboardInterrupt

    Story(ann).ends()
    monkeypatch.setattr(events, "notify", killed)
    with pytest.raises(KeyboardInterrupt):
        notify_ended()
    monkeypatch.undo()
    assert notify_ended() == 1
    assert len(noted()) == 1


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_of_two_rounds_at_once_one_notes_it(ann: User) -> None:
    for _ in range(3):
        Story(ann).ends()
    start = threading.Barrier(2)

    def sweep() -> None:
        start.wait(30)
        notify_ended()
        connection.close()

    both = [threading.Thread(target=sweep) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join(30)
    assert len(noted()) == 3


def test_the_browser_shows_nothing_any_more_once_that_is_off(ann: User) -> None:
    """Also what was sent by e-mail before."""
    Story(ann).ends("failed", "model_error")
    notify_ended()
    Notice.objects.update(mailed_at=timezone.now())
    assert len(news_of(ann).items) == 1
    choose(ann, {NoticeKind.FAILED: Ways(page=False, mail=True)}, None)
    assert news_of(ann).items == []
