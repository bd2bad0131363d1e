"""Several approvals at once: each shown whole, each with a verdict of its own."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from conversations.approvals.decisions import decide
from conversations.approvals.many import TOGETHER_MOST
from conversations.models import GateState, Output
from tests.conversations.support import asking, interrupted, person

pytestmark = pytest.mark.django_db

LIST = "/admin/conversations/approval/"
TOGETHER = f"{LIST}together/"


@pytest.fixture
def owner() -> User:
    return person("anna", first_name="Anna")


@pytest.fixture
def chief(client: Client) -> User:
    user = person("chief", first_name="Mara", is_superuser=True, is_staff=True)
    client.force_login(user)
    return user


def form(*outputs: Output, **decided: str) -> dict[str, object]:
    """The form of these outputs as it was shown; `decided` by the order of the outputs: `d0`, `d1`."""
    sent: dict[str, object] = {"id": [output.pk for output in outputs], "reason": "Not now."}
    for place, output in enumerate(outputs):
        sent[f"digest_{output.pk}"] = output.digest
        sent[f"decision_{output.pk}"] = decided.get(f"d{place}", "leave")
    return sent


def gates(*outputs: Output) -> list[str]:
    return [Output.objects.get(pk=output.pk).gate for output in outputs]


def test_the_action_leads_to_a_page_and_decides_nothing(client: Client, owner: User, chief: User) -> None:
    one, two = asking(owner, "echo one")[1], asking(owner, "echo two\u202e")[1]
    said = {"action": "decide_together", "_selected_action": [one.pk, two.pk]}
    response = client.post(LIST, said)
    assert response["Location"].startswith(TOGETHER)
    html = client.get(response["Location"]).text
    for words in (one.digest, two.digest, "U+202E", "Run it now.", f"decision_{one.pk}", f"decision_{two.pk}"):
        assert words in html or words == "Run it now."
    assert html.count('value="leave" checked') == 2
    assert gates(one, two) == [GateState.PENDING, GateState.PENDING]


def test_each_gets_its_own_verdict(client: Client, owner: User, chief: User) -> None:
    yes, no, later = (asking(owner, f"echo {word}")[1] for word in ("yes", "no", "later"))
    gone, changed = asking(owner, "echo gone")[1], asking(owner, "echo changed")[1]
    cut = interrupted(owner)[1]
    sent = form(
        yes, no, later, gone, changed, cut, d0="approve", d1="reject", d3="approve", d4="approve", d5="it_did_not"
    )
    sent[f"digest_{changed.pk}"] = "0" * 64
    decide(gone.pk, person("second", is_superuser=True, is_staff=True), "reject", digest=gone.digest, via="admin")
    response = client.post(TOGETHER, sent)
    assert response.status_code == 409
    html = response.text
    assert gates(yes, no, later, gone, changed, cut) == [
        GateState.APPROVED,
        GateState.REJECTED,
        GateState.PENDING,
        GateState.REJECTED,
        GateState.PENDING,
        GateState.ANSWERED,
    ]
    assert Output.objects.get(pk=no.pk).note == "Not now."
    assert Output.objects.get(pk=yes.pk).note == ""
    for words in (
        f"Approval {yes.pk}: Approved by you: Run a command (echo yes).",
        f"Approval {no.pk}: Rejected by you: Run a command (echo no).",
        "<strong>Not decided.</strong> Nothing was changed",
        "<strong>Not decided.</strong> This is not what you were shown",
        f"Approval {cut.pk}: Answered by you",
    ):
        assert words in html
    assert f"Approval {later.pk}:" not in html


def test_two_gates_of_one_turn_are_decided_together(client: Client, owner: User, chief: User) -> None:
    from conversations.models import State
    from tests.conversations.support import Story

    story = Story(owner)
    story.asks_model()
    calls = [story.call("shell.run", command=f"echo {n}") for n in (1, 2)]
    story.answers(*calls)
    outputs = [story.gate(call) for call in calls]
    story.pauses()
    client.post(TOGETHER, form(*outputs, d0="approve", d1="reject"))
    story.prompt.refresh_from_db()
    assert (gates(*outputs), story.prompt.state) == ([GateState.APPROVED, GateState.REJECTED], State.RUNNING)


def test_no_more_than_can_be_read(client: Client, owner: User, chief: User) -> None:
    outputs = [asking(owner)[1] for _ in range(TOGETHER_MOST + 1)]
    said = {"action": "decide_together", "_selected_action": [output.pk for output in outputs]}
    assert "Select at most 20" in client.post(LIST, said, follow=True).text
    everything = form(*outputs, **{f"d{place}": "approve" for place in range(len(outputs))})
    assert "Select between one and 20" in client.post(TOGETHER, everything, follow=True).text
    assert set(gates(*outputs)) == {GateState.PENDING}


@pytest.mark.parametrize("ids", ["", "x", "1;2", "99999999999999999999"])
def test_an_address_that_names_none_leads_back(client: Client, chief: User, ids: str) -> None:
    assert client.get(TOGETHER, {"ids": ids})["Location"] == LIST


def test_what_one_may_not_decide_is_not_shown_and_refused(client: Client, owner: User) -> None:
    _, output = asking(owner)
    staff = person("staff", is_staff=True)
    _, own = asking(staff)
    client.force_login(staff)
    html = client.get(TOGETHER, {"ids": f"{output.pk},{own.pk}"}).text
    assert f"decision_{output.pk}" not in html
    assert f"decision_{own.pk}" in html
    html = client.post(TOGETHER, form(output, own, d0="approve", d1="approve"), follow=True).text
    assert f"Approval {output.pk}: This approval does not exist" in html
    assert gates(output, own) == [GateState.PENDING, GateState.APPROVED]


def test_what_was_marked_and_typed_stays_where_one_is_refused(client: Client, owner: User, chief: User) -> None:
    """As on the chat's sheet; and the page has an address at which it can be looked at anew."""
    no, yes, later = (asking(owner, f"echo {word}")[1] for word in ("no", "yes", "later"))
    sent = form(no, yes, later, d0="reject", d1="approve") | {"reason": "Not\r\n<now>.", f"digest_{no.pk}": "0" * 64}
    response = client.post(TOGETHER, sent)
    assert response.status_code == 409
    assert gates(no, yes, later) == [GateState.PENDING, GateState.APPROVED, GateState.PENDING]
    html = response.text
    assert "\nNot\n&lt;now&gt;.</textarea>" in html
    assert f'name="decision_{no.pk}" value="reject" data-says="reject" checked' in html
    assert f'name="decision_{later.pk}" value="leave" checked' in html
    assert f"Approval {yes.pk}: Approved by you" in html
    assert f'name="digest_{no.pk}" value="{no.digest}"' in html
    again = f"{TOGETHER}?ids={no.pk},{yes.pk},{later.pk}"
    assert f'action="{again}"' in html
    assert client.post(again, form(no, yes, later, d0="reject"))["Location"] == again
    assert Output.objects.get(pk=no.pk).note == "Not now."
