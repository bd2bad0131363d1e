"""The password again: no call of a risk that the site names is let run without it, wherever it is decided."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from agents.engine.decisions import RUNS
from agents.engine.execution.gates import ANOTHER
from conversations.accounts.reauthentication import HAS_NONE, LASTS_MINUTES
from conversations.approvals.decisions import DecisionRefused, decide
from conversations.approvals.many import WantedDecision, decide_many
from conversations.models import GateState, Output
from tests.api.client import Api, error_of, with_key
from tests.conversations.pages.test_approvals import HTMX, batch, command, edited, said, words
from tests.conversations.support import PASSWORD, interrupted, person

pytestmark = pytest.mark.django_db

PAGES = ("chat", "inbox", "admin")
SHEETS = ("sheet", "together", "admin together")


@pytest.fixture(autouse=True)
def _named(settings: Settings) -> None:
    settings.AGENTSITE_REAUTHENTICATE = ["high", "destructive"]


@pytest.fixture
def anna(client: Client) -> User:
    """Somebody who may decide everywhere, and signed in a while ago."""
    user = person("anna", "decide_approval", is_staff=True)
    client.force_login(user)
    minutes_pass(client, LASTS_MINUTES)
    return user


def minutes_pass(client: Client, minutes: float) -> None:
    """As far as this session's password is concerned."""
    session = client.session
    session["password_entered"] -= 60 * minutes
    session.save()


def address(place: str, output: Output) -> str:
    """Where one is decided, or several are."""
    return {
        "chat": reverse("decide", args=[output.pk]),
        "inbox": f"/approvals/{output.pk}/",
        "admin": f"/admin/conversations/approval/{output.pk}/change/",
        "sheet": reverse("sheet", args=[output.conversation_id]),
        "together": "/approvals/together/",
        "admin together": "/admin/conversations/approval/together/",
    }[place]


def several(*outputs: Output, decision: str = "approve", **more: str) -> dict[str, Any]:
    sent: dict[str, Any] = {"id": [output.pk for output in outputs], **more}
    for output in outputs:
        sent |= {f"digest_{output.pk}": output.digest, f"decision_{output.pk}": decision}
    return sent


def gate(output: Output) -> str:
    return Output.objects.get(pk=output.pk).gate


def edit_on_sheet(output: Output) -> dict[str, Any]:
    typed = {f"edited_{output.pk}": "1", f"{output.pk}-text-0": "ls", f"{output.pk}-number-1": ""}
    return several(output, **typed)


def by_key(way: str, by: User, output: Output) -> None:
    api, body = with_key(by), {"digest": output.digest}
    if way == "several":
        api.post("/api/approvals/decide/", [{"id": output.pk, "decision": "approve", **body}])
    else:
        api.post(f"/api/approvals/{output.pk}/approve/", body | ({"input": {"command": "ls"}} if way == "edit" else {}))


WAYS = (
    *(f"{place}, {what}" for place in (*PAGES, *SHEETS) for what in ("approve", "edit", "with a script")),
    *(f"by key, {what}" for what in ("approve", "edit", "several")),
    "session of a program, approve",
    "many, approve",
)


def approve(way: str, client: Client, by: User, output: Output) -> None:
    """Try to let it run, in this way."""
    place, _, what = way.partition(", ")
    if place == "by key":
        by_key(what, by, output)
    elif place == "many":
        decide_many([WantedDecision(output.pk, "approve", output.digest)], by, "page")
    elif place == "session of a program":
        body = {"digest": output.digest}
        client.post(f"/api/approvals/{output.pk}/approve/", body, content_type="application/json")
    else:
        edits, sends = (edit_on_sheet(output), several) if place in SHEETS else (edited(output, "ls"), said)
        sent = edits if what == "edit" else sends(output)
        client.post(address(place, output), sent, headers=HTMX if what == "with a script" else {})


@pytest.mark.parametrize("way", WAYS)
def test_no_way_to_approve_does_without_it(client: Client, anna: User, settings: Settings, way: str) -> None:
    """And with the setting off, or for another risk, each of them approves."""
    _, output = command(anna)
    approve(way, client, anna, output)
    assert gate(output) == GateState.PENDING
    settings.AGENTSITE_REAUTHENTICATE = ["destructive"]
    approve(way, client, anna, output)
    assert gate(output) == GateState.APPROVED


@pytest.mark.parametrize("place", [*PAGES, *SHEETS])
def test_running_again_needs_it_and_the_other_answers_do_not(client: Client, anna: User, place: str) -> None:
    sends = several if place in SHEETS else said
    _, output = interrupted(anna)
    assert client.post(address(place, output), sends(output, decision="run_again")).status_code == 400
    assert gate(output) == GateState.PENDING
    client.post(address(place, output), sends(output, decision="run_again", password=PASSWORD))
    assert gate(output) == GateState.APPROVED
    minutes_pass(client, LASTS_MINUTES)
    _, output = interrupted(anna)
    client.post(address(place, output), sends(output, decision="it_ran", password="filled in by a browser"))
    assert (gate(output), AccessAttempt.objects.count()) == (GateState.ANSWERED, 0)


@pytest.mark.parametrize("decision", sorted(RUNS))
def test_the_function_that_decides_refuses_by_itself(anna: User, decision: str) -> None:
    _, output = interrupted(anna) if decision == "run_again" else command(anna)
    with pytest.raises(DecisionRefused) as refused:
        decide(output.pk, anna, decision, digest=output.digest, via="page")
    assert refused.value.code == "reauthenticate"
    decide(output.pk, anna, decision, digest=output.digest, via="page", verified=True)
    assert gate(output) == GateState.APPROVED


@pytest.mark.parametrize("place", [*PAGES, *SHEETS])
def test_the_password_lasts_for_ten_minutes_in_this_session(client: Client, anna: User, place: str) -> None:
    sends = several if place in SHEETS else said
    first, second, third, fourth = (command(anna, f"echo {n}")[1] for n in range(4))
    assert 'name="password"' in client.get(address("inbox", first)).text
    assert client.post(address(place, first), sends(first, password=PASSWORD)).status_code == 302
    minutes_pass(client, LASTS_MINUTES - 0.5)
    assert client.post(address(place, second), sends(second)).status_code == 302
    other = Client()
    other.force_login(anna)
    assert other.post(address(place, third), sends(third)).status_code == 302  # signing in is entering it
    minutes_pass(client, 1)
    assert client.post(address(place, fourth), sends(fourth)).status_code == 400
    assert [gate(each) for each in (first, second, third, fourth)] == [*["approved"] * 3, "pending"]


@pytest.mark.parametrize("place", [*PAGES, *SHEETS])
def test_rejecting_never_needs_it(client: Client, anna: User, place: str) -> None:
    _, output = command(anna)
    sent = said(output, "reject", reason="No.", password="x")
    if place in SHEETS:
        sent = several(output, decision="reject", reason="No.", password="filled in by a browser")
    assert client.post(address(place, output), sent).status_code == 302
    assert (gate(output), AccessAttempt.objects.count()) == (GateState.REJECTED, 0)


@pytest.mark.parametrize("place", PAGES)
@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_card_keeps_what_was_typed(client: Client, anna: User, place: str, password: str) -> None:
    _, output = command(anna)
    response = client.post(address(place, output), edited(output, "make tests", password=password))
    told = words(response.text)
    assert response.status_code == 400
    assert "make tests</textarea>" in response.text
    assert ("this is not your password. 4 attempts left." in told) == bool(password)
    assert ("Nothing was decided: enter your password." in told) == (not password)
    assert re.search(r'autocomplete="current-password"\s+autofocus aria-invalid', response.text)
    assert gate(output) == GateState.PENDING


@pytest.mark.parametrize("place", SHEETS)
@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_sheet_keeps_what_was_marked_and_typed(client: Client, anna: User, place: str, password: str) -> None:
    """Nothing of it is decided, what is rejected no more than what is approved."""
    _, (yes, no) = batch(anna, "echo yes", "echo no")
    sent = several(yes, no, password=password) | {f"decision_{no.pk}": "reject", f"reason_{no.pk}": "Not that."}
    response = client.post(address(place, yes), sent)
    assert response.status_code == 400
    assert [gate(each) for each in (yes, no)] == [GateState.PENDING] * 2
    assert re.search(rf'name="decision_{yes.pk}" value="approve"[^>]*checked', response.text)
    assert re.search(rf'name="decision_{no.pk}" value="reject"[^>]*checked', response.text)
    assert "Not that.</textarea>" in response.text
    assert ("this is not your password" in words(response.text)) == bool(password)
    assert client.post(address(place, yes), sent | {"password": PASSWORD}).status_code == 302
    assert [gate(each) for each in (yes, no)] == [GateState.APPROVED, GateState.REJECTED]


@pytest.mark.parametrize("place", [*PAGES, *SHEETS])
def test_whoever_is_asked_for_it_is_told_first_that_the_call_has_changed(
    client: Client, anna: User, place: str
) -> None:
    _, output = command(anna)
    shown = Output(pk=output.pk, conversation_id=output.conversation_id, digest="before")
    response = client.post(address(place, output), (several if place in SHEETS else said)(shown))
    assert "This is not what you were shown." in words(response.text)
    assert gate(output) == GateState.PENDING


def test_wrong_passwords_count_and_a_lock_keeps_the_card(client: Client, anna: User) -> None:
    """Then the right one is not accepted either; a rejection is."""
    _, output = command(anna)
    typed = edited(output, "make tests", password="wrong")
    told = [client.post(address("inbox", output), typed) for _ in range(5)]
    told.append(client.post(address("inbox", output), typed | {"password": PASSWORD}))
    assert [response.status_code for response in told] == [400] * 6
    for response in told[4:]:
        assert "too many passwords were tried. Try again in 15 minutes." in words(response.text)
        assert "make tests</textarea>" in response.text
    assert gate(output) == GateState.PENDING
    signs_in = Client().post(reverse("login"), {"username": "anna", "password": PASSWORD})
    assert signs_in.status_code == 429
    client.post(address("inbox", output), said(output, "reject"))
    assert gate(output) == GateState.REJECTED


@pytest.mark.parametrize("place", [*PAGES, *SHEETS])
def test_who_has_no_password_is_told_what_to_do(client: Client, anna: User, place: str) -> None:
    anna.set_unusable_password()
    anna.save()
    client.force_login(anna)
    minutes_pass(client, LASTS_MINUTES)
    _, output = command(anna)
    response = client.post(address(place, output), (several if place in SHEETS else said)(output))
    assert response.status_code == 400
    assert HAS_NONE in words(response.text)
    assert 'name="password"' not in response.text
    assert gate(output) == GateState.PENDING


def test_over_the_api_it_is_403_and_says_where(client: Client, anna: User) -> None:
    api: Api = with_key(anna)
    first, second = (command(anna, f"echo {n}")[1] for n in range(2))
    told = error_of(api.post(f"/api/approvals/{first.pk}/approve/", {"digest": first.digest}), 403)
    assert told["code"] == "reauthenticate"
    assert "Decide it on a page of the site." in told["message"]
    wanted = [
        {"id": first.pk, "decision": "approve", "digest": first.digest},
        {"id": second.pk, "decision": "reject", "digest": second.digest},
    ]
    (refused, rejected) = api.post("/api/approvals/decide/", wanted).json()["results"]
    assert (refused["status"], refused["error"]["code"], rejected["status"]) == (403, "reauthenticate", 200)
    assert [gate(each) for each in (first, second)] == [GateState.PENDING, GateState.REJECTED]


def test_an_edit_that_asks_somebody_else_needs_it_too(client: Client, anna: User) -> None:
    person("bela", "decide_approval")
    _, output = command(person("owner"), who=ANOTHER)
    sent: dict[str, Any] = {"digest": output.digest, "via": "inbox", "input": {"command": "ls"}}
    with pytest.raises(DecisionRefused, match="needs your password"):
        decide(output.pk, anna, "approve", **sent)
    assert decide(output.pk, anna, "approve", **sent, verified=True).edited_by == f"user:{anna.pk}"


def test_the_field_is_there_only_where_it_is_needed(client: Client, anna: User, settings: Settings) -> None:
    """A page also says for how long the session's person is not asked: its script shows the field after that."""
    high, write = command(anna)[1], command(anna, risk="write")[1]
    assert 'name="password"' in client.get(address("inbox", high)).text
    assert 'name="password"' not in client.get(address("inbox", write)).text
    assert "data-verified" not in client.get(address("inbox", high)).text
    client.force_login(anna)
    seconds = re.search(r'data-verified="(\d+)"', client.get(address("inbox", high)).text)
    assert seconds
    assert 590 <= int(seconds[1]) <= 600
    settings.AGENTSITE_REAUTHENTICATE = []
    html = client.get(address("inbox", high)).text
    assert 'name="password"' not in html
    assert "data-verified" not in html
