"""Approvals decided together must have one risk: people who approve many at once look at them as one (C14)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from conversations.admin.start import TIRING
from conversations.models import Conversation, GateState, Output
from tests.api.client import error_of, with_key
from tests.conversations.support import Story, person

pytestmark = pytest.mark.django_db
TOGETHER = "/admin/conversations/approval/together/"


@pytest.fixture
def anna(client: Client) -> User:
    user = person("anna", first_name="Anna", is_superuser=True, is_staff=True)
    client.force_login(user)
    return user


def batch(owner: User, *risks: str) -> tuple[Conversation, list[Output]]:
    """Commands of these risks that one answer asks for."""
    story = Story(owner)
    story.asks_model()
    calls = [story.call("shell.run", command=f"echo {n}") for n in range(len(risks))]
    story.answers(*calls)
    outputs = [story.gate(call, risk=risk) for call, risk in zip(calls, risks, strict=True)]
    story.pauses()
    return story.conversation, outputs


def form(outputs: list[Output], *decisions: str) -> dict[str, object]:
    sent: dict[str, object] = {"id": [output.pk for output in outputs]}
    for output, decision in zip(outputs, decisions, strict=True):
        sent |= {f"digest_{output.pk}": output.digest, f"decision_{output.pk}": decision}
    return sent


def stands(outputs: list[Output]) -> list[str]:
    return [Output.objects.get(pk=output.pk).gate for output in outputs]


def test_pages_decide_nothing_of_a_mixed_selection_and_keep_it(client: Client, anna: User) -> None:
    conversation, outputs = batch(anna, "write", "high", "write")
    for page in (reverse("sheet", args=[conversation.pk]), TOGETHER):
        answer = client.post(page, form(outputs, "approve", "approve", "leave"))
        assert answer.status_code == 400, page
        assert "different risks (writes, high risk)" in answer.text
        assert answer.text.count('value="approve" data-says="approve" checked') in (2, 0)
        assert answer.text.count("checked") == 3
        assert stands(outputs) == [GateState.PENDING] * 3


def test_those_of_one_risk_are_approved_and_any_are_rejected(client: Client, anna: User) -> None:
    conversation, outputs = batch(anna, "write", "high", "write")
    page = reverse("sheet", args=[conversation.pk])
    assert client.post(page, form(outputs, "approve", "reject", "approve")).status_code == 302
    assert stands(outputs) == [GateState.APPROVED, GateState.REJECTED, GateState.APPROVED]
    _, outputs = batch(anna, "write", "high", "destructive")
    assert client.post(TOGETHER, form(outputs, "reject", "reject", "reject")).status_code == 302
    assert stands(outputs) == [GateState.REJECTED] * 3


def test_pages_mark_the_actions_of_one_risk(client: Client, anna: User) -> None:
    """All of them where there is one risk; of several, those of the one that is chosen."""
    conversation, outputs = batch(anna, "write", "high", "write")
    page, mark = reverse("sheet", args=[conversation.pk]), 'value="approve" data-says="approve" checked'
    assert "Approve…" in client.get(conversation.get_absolute_url()).text
    everything = client.get(page, {"all": "approve"}).text
    assert everything.count(mark) == 0
    assert "Select 2: writes" in everything
    assert "Select 1: high risk" in everything
    assert client.get(page, {"all": "approve", "risk": "write"}).text.count(mark) == 2
    ids = ",".join(str(output.pk) for output in outputs)
    assert client.get(TOGETHER, {"ids": ids, "risk": "high"}).text.count(mark) == 1
    one, _ = batch(anna, "high", "high")
    assert "Approve all…" in client.get(one.get_absolute_url()).text
    assert client.get(reverse("sheet", args=[one.pk]), {"all": "approve"}).text.count(mark) == 2


def test_programs_are_told_which_is_which(anna: User) -> None:
    _, outputs = batch(anna, "write", "high", "write")
    wanted = [{"id": o.pk, "digest": o.digest, "decision": "approve"} for o in outputs]
    api = with_key(anna)
    error = error_of(api.post("/api/approvals/decide/", wanted), 400)
    assert (error["code"], stands(outputs)) == ("mixed_risk", [GateState.PENDING] * 3)
    assert error["risks"] == {"write": [outputs[0].pk, outputs[2].pk], "high": [outputs[1].pk]}
    wanted[1]["decision"] = "reject"
    answer = api.post("/api/approvals/decide/", wanted)
    assert [each["status"] for each in answer.json()["results"]] == [200, 200, 200]
    assert error_of(api.post("/api/approvals/decide/", wanted * 7), 400)["code"] == "invalid"


def test_the_risk_of_what_one_is_not_shown_is_not_told(anna: User, bob: User) -> None:
    _, (secret,) = batch(anna, "destructive")
    _, (own,) = batch(bob, "write")
    wanted = [{"id": o.pk, "digest": o.digest, "decision": "approve"} for o in (secret, own)]
    results = with_key(bob).post("/api/approvals/decide/", wanted).json()["results"]
    assert [each["status"] for each in results] == [404, 200]


def test_the_first_page_warns_where_somebody_decides_more_than_is_read(client: Client, anna: User, bob: User) -> None:
    """C14: decisions of the last hour, by person."""
    _, (gate,) = batch(anna, "write")
    rows = [(anna, TIRING + 1, 1), (bob, TIRING, 1), (bob, 5, 61)]
    for by, count, minutes in rows:
        at = timezone.now() - timedelta(minutes=minutes)
        decided = {"decided_by": f"user:{by.pk}", "decided_at": at, "gate": GateState.APPROVED}
        copies = [Output.objects.get(pk=gate.pk) for _ in range(count)]
        last = Output.objects.order_by("-position")[0].position
        for number, copy in enumerate(copies, last + 1):
            copy.pk, copy.position = None, number
            for name, value in decided.items():
                setattr(copy, name, value)
        Output.objects.bulk_create(copies)
    html = client.get("/admin/").text
    assert f"In the last hour: you {TIRING + 1}, bob {TIRING}." in html
    assert f"{TIRING + 1} decisions in an hour, by you." in html
    assert f"{TIRING} decisions in an hour, by bob" not in html
