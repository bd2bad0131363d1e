"""What keys used under /v1, wherever a person's usage is told."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from conversations.accounts.keys import make_key
from conversations.models import ApiKey, PassthroughUsage, Quota, Usage
from conversations.usage.quotas import OverQuota, check
from conversations.usage.totals import DAY, MONTH, NOTHING, by_key, of_person
from tests.api.client import with_key
from tests.conversations.support import person

pytestmark = pytest.mark.django_db


def key_of(user: User, name: str) -> ApiKey:
    return make_key(user, name, ["chat"])[0]


def used(key: ApiKey, model: str, *, days: float = 0, answers: int = 1, tokens: int = 100, **more: int) -> None:
    PassthroughUsage.objects.create(
        user=key.user,
        key_id=key.pk,
        key_name=key.name,
        model=model,
        minute=timezone.now() - timedelta(days=days),
        answers=answers,
        input_tokens=tokens,
        output_tokens=tokens,
        **{"requests": answers, **more},
    )


@pytest.fixture
def busy(ann: User) -> User:
    """Somebody with a key that works, one that was revoked, and a conversation; somebody else has a key as well."""
    laptop, gone = key_of(ann, "laptop"), key_of(ann, "CI")
    used(laptop, "small-1", requests=3, answers=2, estimated=1, cost_nano_usd=1_500_000)
    used(laptop, "large-1", unpriced=1, tokens=500)
    used(laptop, "small-1", days=2, cost_nano_usd=1_000_000)
    used(laptop, "small-1", days=40)
    for number in range(3):
        used(laptop, f"no-{number}", answers=0, requests=1, tokens=0)
    used(gone, "small-1", days=3)
    PassthroughUsage.objects.create(user=ann, key_id=gone.pk, minute=timezone.now(), requests=1)  # its last minute
    gone.delete()
    Usage.objects.create(
        conversation_id=1, prompt_id=1, path="1", user=ann, model="demo", time=timezone.now(), input_tokens=7
    )
    used(key_of(person("bob"), "bob's"), "small-1")
    return ann


def test_it_is_told_by_key_and_model(busy: User) -> None:
    """Models that never answered are one row, and a revoked key keeps its name."""
    told = [
        (each.name, each.revoked, each.model, each.requests, each.spent.answers, each.spent.total_tokens)
        for each in by_key(busy.pk, MONTH)
    ]
    assert told == [
        ("CI", True, "small-1", 1, 1, 200),
        ("CI", True, "", 1, 0, 0),
        ("laptop", False, "large-1", 1, 1, 1000),
        ("laptop", False, "small-1", 4, 3, 400),
        ("laptop", False, "", 3, 0, 0),
    ]
    assert [(each.model, each.estimated, each.spent.cost) for each in by_key(busy.pk, DAY)] == [
        ("", 0, ""),
        ("large-1", 0, ""),
        ("small-1", 1, "$0.0015"),
        ("", 0, ""),
    ]


def test_a_persons_sums_have_it_too(busy: User) -> None:
    today = of_person(busy.pk, DAY).spent
    assert (today.answers, today.total_tokens, today.unpriced) == (4, 1207, 2)
    assert today.models == ("demo", "large-1", "small-1")
    assert of_person(busy.pk, MONTH).spent.total_tokens == 1607
    assert of_person(person("eve").pk, MONTH).spent == NOTHING


def test_a_quota_of_tokens_counts_both(busy: User) -> None:
    Quota.objects.create(user=busy, tokens_a_day=1208)
    check(busy.pk)
    Quota.objects.update(tokens_a_day=1207)
    with pytest.raises(OverQuota, match="1,207 tokens were used"):
        check(busy.pk)


def test_programs_are_told(busy: User) -> None:
    Quota.objects.create(user=busy, requests_a_minute=0, requests_a_day=50)
    told = with_key(busy).get("/api/usage/").json()
    today, month = told["last_24_hours"], told["last_30_days"]
    assert (today["total_tokens"], today["requests"], month["requests"]) == (1207, 8, 10)
    assert (told["quota"]["requests_a_minute"], told["quota"]["requests_a_day"]) == (None, 50)
    small = next(each for each in today["keys"] if each["model"] == "small-1")
    assert (
        small
        | {
            "name": "laptop",
            "revoked": False,
            "requests": 3,
            "answers": 2,
            "estimated": 1,
            "unpriced": 0,
            "total_tokens": 200,
            "cost_usd": 0.0015,
            "known_usd": 0.0015,
        }
        == small
    )
    (gone,) = (each for each in month["keys"] if each["revoked"] and each["model"])
    assert (gone["name"], gone["total_tokens"]) == ("CI", 200)
    assert [each["model"] for each in month["keys"] if not each["answers"]] == [None, None]


def rows_of(html: str) -> list[list[str]]:
    """Return the cells of the table of keys, in plain text."""
    table = html.partition('id="used-keys"')[2].partition("</table>")[0].partition("</thead>")[2]
    cells = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in table.split("</tr>"))
    plain = ([" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in row] for row in cells)
    return [row for row in plain if row]


def test_the_account_page_has_a_row_for_each_key_and_model(busy: User, client: Client) -> None:
    client.force_login(busy)
    html = client.get("/account/").text
    assert rows_of(html) == [
        ["CI (revoked)"],
        ["small-1", "1", "100", "100", "$0.00"],
        ["No model, or no answer", "1", "0", "0", "-"],
        ["laptop"],
        ["large-1", "1", "500", "500", "unknown"],
        ["small-1", "4", "200", "200 partly estimated", "$0.0025"],
        ["No model, or no answer", "3", "0", "0", "-"],
    ]
    assert "up to 600" in html
    assert "requests to <code>/v1</code> in the last 24 hours" not in html
    Quota.objects.create(user=busy, requests_a_minute=0, requests_a_day=8)
    html = client.get("/account/").text
    assert "requests a minute" not in html
    assert '<strong class="num">8</strong> requests to <code>/v1</code> in the last 24 hours' in html
    assert "They can send more once" in html


def test_a_key_whose_name_nobody_knows(ann: User, client: Client) -> None:
    PassthroughUsage.objects.create(user=ann, key_id=77, model="m", minute=timezone.now(), requests=1, answers=1)
    client.force_login(ann)
    assert rows_of(client.get("/account/").text)[0] == ["A revoked key"]
    assert with_key(ann).get("/api/usage/").json()["last_24_hours"]["keys"][0]["name"] is None


def test_hostile_names_are_texts(ann: User, client: Client) -> None:
    used(key_of(ann, "<b>bold"), "<script>alert(1)</script>")
    client.force_login(ann)
    html = client.get("/account/").text
    assert "<script>alert(1)" not in html
    assert "<b>bold" not in html


def test_the_page_is_quiet_where_no_key_was_used(ann: User, client: Client) -> None:
    client.force_login(ann)
    html = client.get("/account/").text
    assert "used-keys" not in html


def test_a_long_table_ends(ann: User, client: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr("conversations.pages.account.views.KEY_ROWS_MOST", 2)
    key = key_of(ann, "laptop")
    for number in range(5):
        used(key, f"m{number}")
    client.force_login(ann)
    html = client.get("/account/").text
    assert len(rows_of(html)) == 1 + 2
    assert "include 3 more rows" in html
