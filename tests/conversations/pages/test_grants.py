"""Approve and remember on pages: said in words before it is given, by its owner alone, and revoked under My grants."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from agents.engine.grants.conditions import Operator, Part
from conversations.display.remember_form import ConditionRow
from conversations.models import GateState, Grant, Output, Prompt
from tests.conversations.approvals.test_grants import Writing, notes, world  # noqa: F401 - a fixture
from tests.conversations.recorded import Site, pending
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db

LIKE = {"scope": "fields", "op0": "starts_with", "value0": "reports/", "op1": "any", "until": "revoked"}
"""The form says: any note below this folder."""


@pytest.fixture
def prompt(ann: User, site: Site, world: Writing) -> Prompt:  # noqa: F811
    return site.runs(ann, *notes("reports/a"))


@pytest.fixture
def client(ann: User) -> Client:
    signed_in = Client()
    signed_in.force_login(ann)
    return signed_in


def words_of(client: Client, gate: Output, **typed: Any) -> tuple[str, str]:
    """What the form says in words, and what it sends to show that they were read."""
    page = client.post(reverse("grant-words", args=[gate.pk]), LIKE | typed).content.decode()
    return page, page.partition('name="words" value="')[2].partition('"')[0]


def read(client: Client, address: str) -> str:
    """The text of a page."""
    return " ".join(strip_tags(client.get(address).content.decode()).split())


def approve(client: Client, gate: Output, **typed: Any) -> Any:
    given = {"decision": "approve", "digest": gate.digest, "remember": "1"} | LIKE | typed
    return client.post(reverse("decide", args=[gate.pk]), given, headers={"HX-Request": "true"})


def test_a_card_offers_it_and_the_form_opens_with_this_call_in_this_conversation(
    client: Client, prompt: Prompt
) -> None:
    (gate,) = pending(prompt)
    card = client.get(reverse("card", args=[gate.pk])).content.decode()
    assert "Approve and remember" in card
    form = client.get(reverse("card", args=[gate.pk]), {"as": "remember"}).content.decode()
    assert "if it is exactly this call" in form
    assert "In this conversation only, any number of times, until you revoke it." in form


def test_it_is_given_once_its_words_were_read(client: Client, prompt: Prompt) -> None:
    """Without a script the words are shown when the form is sent, and nothing is decided before they were."""
    (gate,) = pending(prompt)
    unread = approve(client, gate)
    assert (unread.status_code, Grant.objects.count()) == (400, 0)
    assert "Read what this would allow, then approve." in unread.content.decode()
    page, seen = words_of(client, gate)
    assert "if path starts with “reports/” and text may be anything" in page
    assert seen in unread.content.decode()
    other = approve(client, gate, words=seen, value0="r")
    assert (other.status_code, Grant.objects.count()) == (400, 0)
    assert approve(client, gate, words=seen).status_code == 200
    grant = Grant.objects.get()
    assert (grant.conditions[0]["value"], grant.conversation, gate.digest) == ("reports/", None, gate.digest)
    gate.refresh_from_db()
    assert gate.gate == GateState.APPROVED


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"value0": "private/"}, "The call that you see here must be allowed too."),
        ({"op0": "matches", "value0": "("}, "This is not a pattern: missing"),
        ({"op0": "any"}, "say at least one thing"),
        ({"uses": "often"}, "Give a number from 1 to"),
        ({"until": "date", "date": "soon"}, "Give a date and a time."),
        ({"until": "date", "date": "2020-01-01T10:00"}, "Choose a time that is still to come."),
    ],
)
def test_what_makes_no_sense_is_said_at_its_field_and_nothing_is_lost(
    client: Client, prompt: Prompt, typed: dict[str, str], words: str
) -> None:
    (gate,) = pending(prompt)
    assert words in words_of(client, gate, **typed)[0]
    answer = approve(client, gate, **typed, here="on", unattended="on")
    page = answer.content.decode()
    assert (answer.status_code, words in page, Grant.objects.exists()) == (400, True, False)
    assert all(value in page for value in typed.values())
    assert page.count(" checked") == 3, "the scope and both boxes"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"here": "on", "uses": "20", "until": "hour"}, "In this conversation only, at most 20 times, until "),
        ({"uses": "1"}, "In all your conversations, once, until you revoke it."),
        ({"unattended": "on"}, "Also when nobody is there"),
        ({"op0": "in", "value0": "reports/a\nreports/b"}, "path is one of “reports/a” or “reports/b”"),
        ({"op0": "is", "op1": "is"}, "path is “reports/a” and text is “t”"),
        ({"op0": "ends_with", "value0": "/a"}, "path ends with “/a”"),
        ({"op0": "matches", "value0": "reports/[a-z]+"}, "path matches the pattern “reports/[a-z]+”"),
        ({"op0": "in", "value0": "reports/a\nb” and text is “t"}, "or &quot;b” and text is “t&quot;"),
    ],
)
def test_in_words(client: Client, prompt: Prompt, typed: dict[str, str], words: str) -> None:
    (gate,) = pending(prompt)
    page, seen = words_of(client, gate, **typed)
    assert words in page
    assert seen


def test_all_that_is_wrong_is_marked_at_once(client: Client, prompt: Prompt) -> None:
    (gate,) = pending(prompt)
    page = words_of(client, gate, op0="matches", value0="(", uses="often", until="date", date="soon")[0]
    for why in ("This is not a pattern", "Give a number from 1 to", "Give a date and a time."):
        assert why in page


def test_a_line_break_in_a_value_can_be_seen(client: Client, ann: User, site: Site, world: Writing) -> None:  # noqa: F811
    (gate,) = pending(site.runs(ann, says("", call("note.write", path="reports/a", text="one\ntwo")), says("Done.")))
    page = words_of(client, gate, op1="is")[0]
    assert "text is “one\u21b5two”" in strip_tags(page)


def test_nobody_else_is_offered_it(kim: User, prompt: Prompt) -> None:
    """Kim decides for others, and sees the card in the inbox; a grant would be Ann's to give."""
    (gate,) = pending(prompt)
    other = Client()
    other.force_login(kim)
    page = other.get(reverse("approval", args=[gate.pk])).content.decode()
    assert "Approve and write" in page or "Approve" in page
    assert "Approve and remember" not in page
    assert other.post(reverse("grant-words", args=[gate.pk]), LIKE).status_code == 404
    given = {"decision": "approve", "digest": gate.digest, "remember": "1", **LIKE}
    refused = other.post(reverse("approval", args=[gate.pk]), given)
    assert (refused.status_code, Grant.objects.exists()) == (400, False)
    assert "cannot be granted" in refused.content.decode()


def test_a_card_says_why_a_grant_does_not_cover_it(client: Client, ann: User, site: Site, prompt: Prompt) -> None:
    (gate,) = pending(prompt)
    approve(client, gate, words=words_of(client, gate)[1])
    site.works()
    (other,) = pending(site.runs(ann, *notes("private/a")))
    page = client.get(reverse("approval", args=[other.pk])).content.decode()
    assert "Your grant for this tool does not cover this call:" in page
    assert "It does not allow this value of path." in page


def test_my_grants_says_what_was_used_and_revokes(client: Client, ann: User, site: Site, prompt: Prompt) -> None:
    assert "You have no grants." in read(client, reverse("grants"))
    (gate,) = pending(prompt)
    approve(client, gate, words=words_of(client, gate)[1])
    site.works()
    assert "Not used yet." in read(client, reverse("grants"))
    used = site.runs(ann, *notes("reports/b"))
    assert "Used once, just now." in read(client, reverse("grants"))
    assert f"#a-{gate.pk}" in client.get(reverse("grants")).content.decode()
    chat = client.get(used.conversation.get_absolute_url()).content.decode()
    assert "Approved by your grant" in chat
    grant = Grant.objects.get()
    client.post(reverse("revoke-grant", args=[grant.pk]))
    ended = read(client, reverse("grants"))
    assert "Revoked just now." in ended
    assert len(pending(site.runs(ann, *notes("reports/c")))) == 1


def test_a_grant_of_one_conversation_names_it(client: Client, prompt: Prompt) -> None:
    (gate,) = pending(prompt)
    approve(client, gate, here="on", words=words_of(client, gate, here="on")[1])
    assert "In “Go.” only, any number of times, until you revoke it." in read(client, reverse("grants"))


def test_another_persons_grant_is_not_there(client: Client, kim: User, prompt: Prompt) -> None:
    (gate,) = pending(prompt)
    approve(client, gate, words=words_of(client, gate)[1])
    other = Client()
    other.force_login(kim)
    assert "You have no grants." in read(other, reverse("grants"))
    assert other.post(reverse("revoke-grant", args=[Grant.objects.get().pk])).status_code == 404
    assert Grant.objects.get().revoked_at is None


@pytest.mark.parametrize("most", [0, 5])
def test_my_grants_takes_as_many_queries_for_many(
    client: Client, prompt: Prompt, django_assert_max_num_queries: Any, most: int
) -> None:
    (gate,) = pending(prompt)
    approve(client, gate, words=words_of(client, gate)[1])
    grant = Grant.objects.get()
    for _ in range(most):
        grant.pk = None
        grant.save()
    with django_assert_max_num_queries(17):
        client.get(reverse("grants"))


@pytest.mark.parametrize("typed", ["NaN", "1e999", "-Infinity", "[" * 3_000, "five"])
def test_what_is_typed_beside_a_number_and_is_none_is_said(typed: str) -> None:
    assert ConditionRow(0, "n", "n", Part(5), Operator.AT_MOST, typed).condition().problem() == "give a number"
