"""The account page: what a person is told of, in which ways, and when not; and what pages are given to tell."""

from __future__ import annotations

import re
from datetime import time

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from conversations.models import Account, NoticeChoice, NoticeKind
from conversations.notifications.choices import choose, ways_of
from conversations.notifications.events import notify_ended
from conversations.notifications.kinds import KINDS, Ways
from conversations.push.list_state import current_list_state
from tests.conversations.support import Story, asking

pytestmark = pytest.mark.django_db
QUIET = {"notices-quiet_from": "22:00", "notices-quiet_to": "07:30"}
FORM = reverse("choose-notifications")


def ticked(html: str) -> list[str]:
    return list(re.findall(r'<input type="checkbox" name="notices-([^"]*)"[^>]* checked>', html))


@pytest.fixture
def mine(client: Client, ann: User) -> Client:
    client.force_login(ann)
    return client


def test_the_table_shows_what_holds_and_stores_what_is_ticked(mine: Client, ann: User) -> None:
    page = mine.get("/account/").text
    assert ticked(page) == ["waits-page", "waits-mail", "ended-page", "failed-page", "failed-mail", "trigger-page",
                            "trigger-mail"]  # fmt: skip
    assert all(rule.choice in page for rule in KINDS.values())
    answer = mine.post(FORM, {"notices-ended-mail": "on", "notices-waits-page": "on", **QUIET})
    assert (answer.status_code, answer["Location"]) == (302, "/account/#notifications")
    assert ticked(mine.get("/account/").text) == ["waits-page", "ended-mail"]
    assert ways_of(ann.pk)[NoticeKind.ENDED] == Ways(page=False, mail=True)
    account = Account.objects.get(user=ann)
    assert (account.quiet_from, account.quiet_to) == (time(22), time(7, 30))
    assert 'value="07:30"' in mine.get("/account/").text
    mine.post(FORM, {"notices-quiet_from": "", "notices-quiet_to": ""})
    account.refresh_from_db()
    assert (account.quiet_from, account.quiet_to) == (None, None)


@pytest.mark.parametrize(
    ("times", "why"),
    [
        (("22:00", ""), "Enter both times"),
        (("", "07:00"), "Enter both times"),
        (("22:00", "22:00"), "two different times"),
        (("25:00", "07:00"), "Enter a valid time"),
    ],
)
def test_quiet_hours_that_make_no_sense_are_refused(mine: Client, ann: User, times: tuple[str, str], why: str) -> None:
    names = ("notices-quiet_from", "notices-quiet_to")
    answer = mine.post(FORM, {"notices-ended-page": "on", **dict(zip(names, times, strict=True))})
    assert answer.status_code == 400
    assert why in answer.text
    assert ticked(answer.text) == ["ended-page"]  # as it was sent
    assert not NoticeChoice.objects.exists()


def test_only_ones_own_by_post_and_signed_in(client: Client, mine: Client, bob: User) -> None:
    assert mine.get(FORM).status_code == 405
    assert Client().post(FORM, {}).status_code == 302
    assert not NoticeChoice.objects.exists()
    mine.post(FORM, {"user": bob.pk})
    assert not NoticeChoice.objects.filter(user=bob).exists()


def test_somebody_deactivated_meanwhile_leaves_nothing(ann: User) -> None:
    """They may have been erased."""
    User.objects.filter(pk=ann.pk).update(is_active=False)
    choose(ann, {NoticeKind.ENDED: Ways(page=True, mail=True)}, (time(22), time(7)))
    assert not NoticeChoice.objects.exists()
    assert not Account.objects.exists()


def test_every_page_has_the_news_and_the_quiet_hours(mine: Client, ann: User) -> None:
    asking(ann)
    before = current_list_state(ann.pk)
    prompt = Story(ann, "Say \u202e<b>it</b>.").ends()
    stood = current_list_state(ann.pk)
    notify_ended()
    assert len({before, stood, current_list_state(ann.pk)}) == 3  # so it is pushed
    page = mine.get("/account/").text
    (news,) = re.findall(r'<ul id="news".*?</ul>', page, re.DOTALL)
    assert 'data-waits="Waiting for you"' in news
    assert "data-quiet" not in news
    assert f'data-heading="Ended" data-link="/c/{prompt.conversation_id}/#t-{prompt.pk}">' in news
    assert "\u202e" not in news
    assert "&lt;b&gt;" in news
    choose(ann, {NoticeKind.WAITS: Ways(page=False, mail=True)}, (time(22), time(7)))
    (news,) = re.findall(r'<ul id="news".*?</ul>', mine.get("/").text, re.DOTALL)
    assert 'data-waits=""' in news
    begin, end = re.findall(r'data-quiet="(\d+) (\d+)"', news)[0]
    assert int(end) - int(begin) == 9 * 3600 * 1000
