"""The figures of approvals in the admin: what was asked, what became of it, and who decided how fast."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.engine.execution.gates import ANOTHER
from conversations.approvals.decisions import decide
from conversations.models import GateState, Output
from conversations.prompts.start import cancel_prompt
from conversations.usage.approvals import MANY, Tally, figures
from tests.conversations.pages.test_approvals import command, words
from tests.conversations.support import Story, interrupted, person

pytestmark = pytest.mark.django_db

PAGE = "/admin/conversations/approval/figures/"
QUERIES_MOST = 11
"""However many approvals there are. Nine of them are the session, the person, and the sidebar."""


@pytest.fixture
def chief(client: Client) -> User:
    user = person("chief", "decide_approval", first_name="Mara", is_staff=True)
    client.force_login(user)
    return user


@pytest.fixture
def owner() -> User:
    return person("anna", first_name="Anna")


def took(output: Output, seconds: float, **more: Any) -> None:
    """As if it had been asked so long before it was decided."""
    row = Output.objects.get(pk=output.pk)
    asked_at = (row.decided_at or timezone.now()) - timedelta(seconds=seconds)
    Output.objects.filter(pk=output.pk).update(asked_at=asked_at, **more)


def decided(owner: User, by: User, decision: str = "approve", *, seconds: float = 60, **more: Any) -> Output:
    _, output = command(owner)
    decide(output.pk, by, decision, digest=output.digest, via="page", **more)
    took(output, seconds)
    return output


def copies(output: Output, number: int, **more: Callable[[int], object]) -> None:
    """The same output, so often: what is counted is in its columns, `more` of which differ by their number."""
    row = Output.objects.get(pk=output.pk)
    known = {field.attname: getattr(row, field.attname) for field in Output._meta.fields} | {"id": None}
    others = ({name: value(n) for name, value in more.items()} for n in range(number))
    made = (Output(**known | {"position": 1_000_000 + n} | other) for n, other in enumerate(others))
    Output.objects.bulk_create(made, batch_size=500)


def counts(tally: Tally) -> dict[str, int]:
    return dict(tally.counts)


def test_each_question_counts_once_by_what_became_of_it(owner: User, chief: User) -> None:
    decided(owner, chief)
    decided(owner, owner, input={"command": "ls"})
    decided(owner, chief, "reject", reason="No.")
    took(command(owner)[1], 5)
    story, stopped = command(owner)
    cancel_prompt(story.prompt.pk, owner)
    Output.objects.filter(pk=command(owner)[1].pk).update(gate=GateState.EXPIRED, decided_by="system")
    _, cut = interrupted(owner)
    decide(cut.pk, owner, "run_again", digest=cut.digest, via="page")
    granted = decided(owner, chief)
    Output.objects.filter(pk=granted.pk).update(decided_by="grant:7", via="grant")
    program = Story(owner)
    question = program.asks_person("Which?")
    program.pauses()
    decide(question.pk, owner, "answer", digest=question.digest, via="page", answer="This.")
    found = figures(30)
    assert counts(found.all) == {
        "unchanged": 1, "edited": 1, "rejected": 1, "waiting": 1, "stopped": 1, "expired": 1,
        "answered": 2, "granted": 1,
    }  # fmt: skip
    assert (found.all.asked, found.all.decided) == (9, 5)
    assert counts(found.tools["human"]) == {"answered": 1}
    assert {by: counts(tally) for by, tally in found.people.items()} == {
        f"user:{chief.pk}": {"unchanged": 1, "rejected": 1},
        f"user:{owner.pk}": {"edited": 1, "answered": 2},
    }
    assert stopped.pk


def test_an_input_with_such_a_key_is_no_edit(owner: User, chief: User) -> None:
    story = Story(owner)
    story.asks_model()
    call = story.call("shell.run", position=1, proposed={"command": "ls"}, text=',"position":5,"proposed":{')
    story.answers(call)
    output = story.gate(call)
    story.pauses()
    decide(output.pk, chief, "approve", digest=output.digest, via="page")
    assert counts(figures(30).all) == {"unchanged": 1}


def test_how_fast_counts_people_only(owner: User, chief: User) -> None:
    for seconds in range(1, 20):
        decided(owner, chief, seconds=seconds)
    granted = decided(owner, chief, seconds=10_000)
    Output.objects.filter(pk=granted.pk).update(decided_by="rule:1")
    tally = figures(30).all
    assert [tally.median, tally.slow] == pytest.approx([10, 19])


def test_only_what_was_asked_in_the_period_counts(client: Client, owner: User, chief: User) -> None:
    for days in (1, 20, 80, 100):
        decided(owner, chief, seconds=days * 86_400)
    assert [figures(days).all.asked for days in (7, 30, 90)] == [1, 2, 3]
    for query, told in {"?days=7": "7", "": "30", "?days=90": "90", "?days=8": "30", "?days=x": "30"}.items():
        text = words(client.get(f"{PAGE}{query}").text)
        assert f"What was asked in the last {told} days" in text


def test_the_page_says_where_a_grant_is_missing(client: Client, owner: User, chief: User) -> None:
    copies(decided(owner, chief), MANY - 2)
    hint = f"All {MANY} were approved unchanged: a grant could cover them."
    assert hint not in words(client.get(PAGE).text)
    last = decided(owner, chief)
    assert hint in words(client.get(PAGE).text)
    Output.objects.filter(pk=last.pk).update(who=ANOTHER)  # which no grant covers
    assert hint not in words(client.get(PAGE).text)
    Output.objects.filter(pk=last.pk).update(who="")
    decided(owner, chief, "reject")
    assert hint not in words(client.get(PAGE).text)


def test_the_page_says_who_decides_faster_than_anybody_reads(client: Client, owner: User, chief: User) -> None:
    copies(decided(owner, chief, seconds=2), 117)
    for _ in range(2):
        decided(owner, chief, seconds=50)
    assert "You Decided 118 of 120 within 3 seconds." in words(client.get(PAGE).text)
    for _ in range(8):
        decided(owner, chief, "reject", seconds=1)
    assert "within 3 seconds" not in words(client.get(PAGE).text)


def test_the_page_is_for_staff_who_decide_for_others(client: Client, owner: User, chief: User) -> None:
    assert "Nobody was asked to approve anything in the last 30 days." in words(client.get(PAGE).text)
    assert f'href="{PAGE}"' in client.get("/admin/").text
    for someone in (person("staff", is_staff=True), person("decider", "decide_approval")):
        client.force_login(someone)
        assert client.get(PAGE).status_code == 403
        assert PAGE not in client.get("/admin/", follow=True).text


def test_ten_thousand_take_as_many_queries_as_one(client: Client, owner: User, chief: User) -> None:
    first = decided(owner, chief)
    client.get(PAGE)
    with CaptureQueriesContext(connection) as few:
        client.get(PAGE)
    people = [chief.pk, owner.pk]
    copies(first, 10_000, tool=lambda n: f"tool.{n % 30}", decided_by=lambda n: f"user:{people[n % 2]}")
    with CaptureQueriesContext(connection) as many:
        html = client.get(PAGE).text
    assert "10,001" in html
    assert len(many) == len(few) <= QUERIES_MOST, [each["sql"] for each in many.captured_queries]
