"""The turn behind a form that is filled in: in no list that people see, and on record like any other."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from conversations.display.search import search
from conversations.erasure import conversations
from conversations.erasure.conversations import KEPT_HIDDEN
from conversations.erasure.people import erase_user
from conversations.models import Conversation, ConversationKind, Erasure, Output, Prompt, Step, Usage
from conversations.pages.sidebar import sidebar
from conversations.prompts.start import start_conversation
from conversations.usage.quotas import running
from conversations.verification.stored import verify
from conversations.worker import tasks
from tests.api.client import with_key
from tests.conversations.support import person
from tests.workflows.trips import Trips, signed_in, text_of, trips
from workflows import discovery
from workflows.history import RunFilter
from workflows.pages.runs import runs_page
from workflows.policies import FILL, READER
from workflows.running import start_run

__all__ = ["trips"]  # a fixture

pytestmark = pytest.mark.django_db

WORDS = "A trip to Rome, with an unmistakable canary."


@pytest.fixture
def hidden(trips: Trips) -> Prompt:
    """A turn that has read a description."""
    trips.finds(city="Rome")
    trips.fills(WORDS)
    return trips.asked()


def test_it_is_a_turn_of_its_own_that_nobody_sees(trips: Trips, hidden: Prompt) -> None:
    assert (hidden.policy, hidden.visible, hidden.origin, hidden.state) == ("form.fill", False, "user", "completed")
    assert hidden.conversation.kind == ConversationKind.HIDDEN
    assert (hidden.conversation.owner, hidden.asked_by) == (trips.ann, trips.ann)


def test_no_list_no_search_and_no_page_has_it(trips: Trips, hidden: Prompt) -> None:
    for more in ({}, {"runs": True}, {"archived": True}, {"query": "canary"}, {"query": "trip"}):
        found = sidebar(trips.ann, **more)
        assert (found.groups, found.ran, found.away, found.waiting) == ([], False, 0, 0)
    mine = Conversation.objects.visible_to(trips.ann)
    assert (list(mine), search(mine, "canary", 10)) == ([], {})
    assert runs_page(trips.ann, RunFilter()).rows == []
    for model in (Prompt, Output):
        assert not model.objects.visible_to(trips.ann).exists()
    pk = hidden.conversation_id
    for address in (f"/c/{pk}/", f"/c/{pk}/export/", f"/c/{pk}/usage/"):
        assert trips.client.get(address).status_code == 404
    for address in ("/", "/?q=canary", "/workflows/", reverse("workflow-runs", args=["trip.book"]), "/account/"):
        assert "unmistakable" not in text_of(trips.client.get(address))


def test_the_api_does_not_have_it(trips: Trips, hidden: Prompt) -> None:
    api = with_key(trips.ann)
    assert api.get("/api/conversations/").json()["results"] == []
    assert api.get("/api/conversations/?search=canary").json()["results"] == []
    assert api.get("/api/workflows/trip.book/runs/").json()["results"] == []
    for address in (f"conversations/{hidden.conversation_id}", f"prompts/{hidden.pk}", f"prompts/{hidden.pk}/steps"):
        assert api.get(f"/api/{address}/").status_code == 404
    sent = api.post(f"/api/conversations/{hidden.conversation_id}/prompts/", {"input": "Hi."})
    assert sent.status_code == 404


@pytest.mark.django_db(transaction=True)  # an export reads one moment, in a transaction of its own
def test_it_verifies_and_is_exported_like_any_ledger(hidden: Prompt) -> None:
    assert verify(hidden.conversation_id).problems == []
    out = io.StringIO()
    call_command("export_ledger", hidden.conversation_id, stdout=out)
    assert any(WORDS in line for line in out.getvalue().splitlines())


@pytest.mark.parametrize("policy", [FILL, READER])
def test_nobody_starts_it_by_name(trips: Trips, hidden: Prompt, policy: str) -> None:
    """It belongs to its page, which says beforehand what it is told."""
    root = person("root", is_superuser=True)
    sent = {"policy": policy, "payload": {"workflow": "trip.book", "text": WORDS}}
    address = f"/api/conversations/{start_conversation(root).pk}/prompts/"
    assert with_key(root).post(address, sent).status_code == 403
    with pytest.raises(CommandError, match="You may not start"):
        call_command("start_policy", policy, user="root", input=json.dumps(sent["payload"]))
    assert list(Prompt.objects.all()) == [hidden]


def test_it_counts_in_usage_and_among_the_turns_at_once(trips: Trips, hidden: Prompt) -> None:
    (used,) = Usage.objects.filter(prompt_id=hidden.pk)
    assert (used.user, used.input_tokens, used.output_tokens) == (trips.ann, 10, 5)
    before = running(trips.ann.pk)
    trips.asks("Another.")
    assert running(trips.ann.pk) == before + 1


def test_it_goes_with_the_person(trips: Trips, hidden: Prompt) -> None:
    erase_user(trips.ann, person("root", is_superuser=True))
    assert not Conversation.objects.exists()
    assert not Step.objects.exists()
    assert "canary" not in json.dumps(list(Prompt.objects.values("input")))


@pytest.mark.django_db(transaction=True)  # the nightly check reads one moment, in a transaction of its own
def test_a_week_after_it_has_ended_the_site_erases_it(
    trips: Trips, hidden: Prompt, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips.finds(city="Paris")
    trips.fills("Another.")
    later = Prompt.objects.exclude(pk=hidden.pk).get()
    trips.asks("One that waits.")
    run = start_run(discovery.installed()["trip.book"], trips.ann, {"city": "Oslo"})
    assert later.ended_at
    now = later.ended_at + KEPT_HIDDEN
    monkeypatch.setattr(conversations, "timezone", SimpleNamespace(now=lambda: now))
    head = Conversation.objects.get(pk=hidden.conversation_id).head
    waits = Prompt.objects.filter(policy="form.fill", ended_at=None).get()

    tasks.nightly()

    assert set(Prompt.objects.values_list("pk", flat=True)) == {later.pk, run.pk, waits.pk}
    assert not Step.objects.filter(payload__contains="canary").exists()
    erased = Erasure.objects.get(conversation_id=hidden.conversation_id)
    assert (erased.erased_by, erased.head) == ("the site", head)
    assert Usage.objects.filter(prompt_id=hidden.pk, user=trips.ann).exists()
    address = reverse("workflow-filled", args=["trip.book", hidden.pk])
    assert trips.client.get(address).status_code == 404
    assert verify(later.conversation_id).problems == []


def test_what_was_redacted_leaves_no_page_behind(trips: Trips, hidden: Prompt) -> None:
    root = call_step(hidden)
    call_command("redact", hidden.conversation_id, root.seq, by=person("root", is_superuser=True).username, reason="x")
    address = reverse("workflow-filled", args=["trip.book", hidden.pk])
    assert trips.client.get(address).status_code == 404


def test_an_answer_that_was_redacted_fills_nothing(trips: Trips, hidden: Prompt) -> None:
    result = Step.objects.of(hidden).get(path="", type="action_result")
    by = person("root", is_superuser=True).username
    call_command("redact", hidden.conversation_id, result.seq, by=by, reason="x")
    page = text_of(trips.client.get(reverse("workflow-filled", args=["trip.book", hidden.pk])))
    assert "has been removed from the record" in page
    assert 'value="Rome"' not in page


def call_step(prompt: Prompt) -> Step:
    return Step.objects.of(prompt).get(path="", type="action_call")


def test_the_admin_tells_them_apart_by_kind(trips: Trips, hidden: Prompt) -> None:
    start_run(discovery.installed()["trip.book"], trips.ann, {"city": "Paris"})
    root: Client = signed_in(person("root", is_superuser=True, is_staff=True))
    for table, parameter in (("conversation", "kind__exact"), ("prompt", "conversation__kind__exact")):
        address = reverse(f"admin:conversations_{table}_changelist")
        counts = {}
        for kind in ("", "chat", "run", "hidden"):
            page = root.get(address, {parameter: kind} if kind else {})
            counts[kind] = len(page.context["cl"].result_list)
        assert counts == {"": 2, "chat": 0, "run": 1, "hidden": 1}
