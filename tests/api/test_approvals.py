"""Approvals over the API: who sees them, and that each is decided once, by its digest."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from conversations.models import Conversation, ConversationKind, GateState, Output, State
from conversations.models import Step as Row
from conversations.prompts.start import cancel_prompt
from tests.api.client import Api, error_of, said, with_key
from tests.conversations.recorded import ONE_GATE, TWO_GATES, Site, at_once, pending
from tests.conversations.support import Story, asking, interrupted, person

pytestmark = pytest.mark.django_db
LIST = "/api/approvals/"


def address(output: Output, word: str = "") -> str:
    return f"{LIST}{output.pk}/{word}/" if word else f"{LIST}{output.pk}/"


def decisions() -> list[dict[str, Any]]:
    return [row.content for row in Row.objects.filter(type="action_result", path__contains="/human").order_by("seq")]


def test_an_approval_is_told_whole(api: Api, ann: User) -> None:
    """The call, its input, the question and the possible decisions: a program sees what a page shows."""
    story, output = asking(ann, "echo \u202e\u200b" + "x" * 5_000)
    (told,) = api.get(LIST).json()["results"]
    assert told["input"] == {"command": "echo \u202e\u200b" + "x" * 5_000}
    assert (told["id"], told["conversation"], told["prompt"], told["owner"]) == (
        output.pk, story.conversation.pk, story.prompt.pk, "ann"
    )  # fmt: skip
    gate = told["approval"]
    assert (gate["state"], gate["ask"], gate["risk"], gate["digest"]) == ("pending", "approve", "high", output.digest)
    assert gate["requested_at"] < gate["expires_at"]
    assert api.get(address(output)).json() == told
    assert b"\\u202e" in api.get(address(output)).content


def test_the_list_is_a_query_by_state(api: Api, ann: User) -> None:
    gates = [asking(ann, f"echo {n}")[1] for n in range(3)]
    api.post(address(gates[0], "approve"), {"digest": gates[0].digest})
    api.post(address(gates[1], "reject"), {"digest": gates[1].digest})
    listed = {
        state: [each["id"] for each in api.get(f"{LIST}?state={state}").json()["results"]]
        for state in (*GateState.values, "all")
    }
    first, second, third = (gate.pk for gate in gates)
    assert listed == {
        "pending": [third], "approved": [first], "rejected": [second], "answered": [], "expired": [], "cancelled": [],
        "all": [third, second, first],
    }  # fmt: skip
    assert [each["id"] for each in api.get(LIST).json()["results"]] == [third]
    assert list(error_of(api.get(f"{LIST}?state=open"), 400)["fields"]) == ["state"]


def test_a_call_is_approved_and_the_turn_goes_on(api: Api, ann: User, site: Site) -> None:
    """T-11: no page is open."""
    prompt = site.runs(ann, *ONE_GATE)
    (gate,) = pending(prompt)
    told = api.post(address(gate, "approve"), {"digest": gate.digest, "note": "Fine."}).json()
    assert (
        told["approval"] | {"state": "approved", "decided_by": f"user:{ann.pk}", "via": "api", "note": "Fine."}
        == (told["approval"])
    )
    site.works()
    assert api.get(f"/api/prompts/{prompt.pk}/").json()["state"] == "completed"
    assert site.world.done == [("shell.run", "a")]


def test_a_call_is_rejected_with_the_reason(api: Api, ann: User, site: Site) -> None:
    prompt = site.runs(ann, *ONE_GATE)
    (gate,) = pending(prompt)
    told = api.post(address(gate, "reject"), {"digest": gate.digest, "reason": "Not today."}).json()
    assert (told["approval"]["state"], told["approval"]["note"]) == ("rejected", "Not today.")
    site.works()
    output = api.get(f"/api/prompts/{prompt.pk}/").json()["outputs"][1]
    assert output["result"]["error"]["code"] == "rejected"
    assert "Not today." in output["result"]["error"]["message"]
    assert site.world.done == []


def test_the_same_decision_again_is_the_first_one(api: Api, ann: User) -> None:
    """R24: the second decision is told the current state."""
    _, gate = asking(ann)
    first = api.post(address(gate, "approve"), {"digest": gate.digest})
    again = api.post(address(gate, "approve"), {"digest": gate.digest})
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    error = error_of(api.post(address(gate, "reject"), {"digest": gate.digest}), 409)
    assert error["code"] == "already_decided"
    assert error["approval"]["approval"]["state"] == "approved"
    assert len(decisions()) == 1


def test_what_was_not_shown_is_not_decided(api: Api, ann: User) -> None:
    """T-09, I6."""
    _, gate = asking(ann)
    error = error_of(api.post(address(gate, "approve"), {"digest": "0" * 64}), 409)
    assert (error["code"], error["approval"]["id"]) == ("changed", gate.pk)
    assert error["approval"]["approval"]["digest"] == gate.digest
    assert decisions() == []


def never_asked(owner: User) -> Output:
    """A call that runs without a gate."""
    story = Story(owner)
    story.asks_model()
    call = story.call("files.list", path=".")
    story.answers(call)
    return Output.objects.get(path=call.path, prompt=story.prompt)


def test_what_nobody_was_asked_about_is_not_decided(api: Api, other: Api, ann: User) -> None:
    """R24: it never was pending; the answer has the output as it is."""
    output, (_, gate) = never_asked(ann), asking(ann)
    digest = "0" * 64
    sent: dict[str, dict[str, Any]] = {"approve": {}, "reject": {}, "answer": {"answer": "Yes."}}
    for word, more in sent.items():
        error = error_of(api.post(address(output, word), {"digest": digest, **more}), 409)
        assert error["code"] == "not_pending"
        assert (error["output"]["id"], error["output"]["approval"]) == (output.pk, None)
        assert said(other.post(address(output, word), {"digest": digest, **more}), 404) == "not_found"
    several = [{"id": each.pk, "decision": "reject", "digest": gate.digest} for each in (output, gate)]
    verdicts = api.post(f"{LIST}decide/", several).json()["results"]
    assert [verdict["status"] for verdict in verdicts] == [409, 200]
    assert verdicts[0]["error"]["code"] == "not_pending"
    assert [each["decision"] for each in decisions()] == ["reject"]
    assert said(api.get(address(output)), 404) == "not_found"


def test_a_permission_to_decide_is_none_to_read(ann: User) -> None:
    """R24: what never had a gate is no business of who decides for others: no word of it, alone or together."""
    output, (_, gate) = never_asked(ann), asking(ann)
    hidden = never_asked(ann)
    Conversation.objects.filter(pk=hidden.conversation_id).update(kind=ConversationKind.HIDDEN)
    staff = with_key(person("dora", "decide_approval", is_staff=True), "decide")
    nothing = 10**6
    words: dict[str, dict[str, Any]] = {"approve": {}, "reject": {}, "answer": {"answer": "Yes."}}
    for word, more in words.items():
        sent = {"digest": gate.digest, **more}
        alike = [staff.post(f"{LIST}{pk}/{word}/", sent) for pk in (output.pk, hidden.pk, nothing)]
        assert [said(each, 404) for each in alike] == ["not_found"] * 3
        assert len({each.content for each in alike}) == 1
    ids = (output.pk, hidden.pk, nothing, gate.pk)
    several = [{"id": pk, "decision": "reject", "digest": gate.digest} for pk in ids]
    verdicts = staff.post(f"{LIST}decide/", several).json()["results"]
    assert [verdict["status"] for verdict in verdicts] == [404, 404, 404, 200]
    assert verdicts[0]["error"] == verdicts[1]["error"] == verdicts[2]["error"]
    assert set(verdicts[0]["error"]) == {"code", "message"}


def test_what_its_owner_cannot_read_is_not_told_to_them_either(api: Api, ann: User) -> None:
    hidden = never_asked(ann)
    Conversation.objects.filter(pk=hidden.conversation_id).update(kind=ConversationKind.HIDDEN)
    assert said(api.post(address(hidden, "reject"), {"digest": "0" * 64}), 404) == "not_found"


def test_the_approvals_of_one_prompt(api: Api, other: Api, ann: User) -> None:
    (story, gate), (_, second) = asking(ann), asking(ann)
    of_one = f"{LIST}?prompt={story.prompt.pk}"
    assert [each["id"] for each in api.get(of_one).json()["results"]] == [gate.pk]
    api.post(address(gate, "reject"), {"digest": gate.digest})
    assert api.get(of_one).json()["results"] == []
    assert [each["id"] for each in api.get(f"{of_one}&state=all").json()["results"]] == [gate.pk]
    assert [each["id"] for each in api.get(LIST).json()["results"]] == [second.pk]
    assert other.get(of_one).json()["results"] == []
    assert api.get(f"{LIST}?prompt=999999").json()["count"] == 0
    assert list(error_of(api.get(f"{LIST}?prompt=mine"), 400)["fields"]) == ["prompt"]


@pytest.mark.parametrize(
    ("word", "body", "field"),
    [
        ("approve", {}, "digest"),
        ("approve", {"digest": "abc"}, "digest"),
        ("approve", {"digest": True}, "digest"),
        ("approve", {"digest": "0" * 64, "note": 1}, "note"),
        ("approve", {"digest": "0" * 64, "input": "rm"}, "input"),
        ("approve", {"digest": "0" * 64, "remember": "conversation"}, "remember"),
        ("approve", {"digest": "0" * 64, "remember": "always"}, "remember"),
        ("approve", {"digest": "0" * 64, "reason": "x"}, "reason"),
        ("approve", {"digest": "0" * 64, "state": "approved"}, "state"),
        ("reject", {}, "digest"),
        ("reject", {"digest": "0" * 64, "reason": "a\x00"}, "reason"),
        ("reject", {"digest": "0" * 64, "reason": "x" * 2001}, "reason"),
        ("reject", {"digest": "0" * 64, "input": {}}, "input"),
    ],
)
def test_a_decision_that_cannot_be_taken_says_why(api: Api, ann: User, word: str, body: object, field: str) -> None:
    _, gate = asking(ann)
    assert list(error_of(api.post(address(gate, word), body), 400)["fields"]) == [field]
    assert decisions() == []


def test_an_edited_call_runs_as_it_was_edited(api: Api, ann: User, site: Site) -> None:
    prompt = site.runs(ann, *ONE_GATE)
    (gate,) = pending(prompt)
    told = api.post(address(gate, "approve"), {"digest": gate.digest, "input": {"command": "b"}})
    assert told.status_code == 200, told.content
    assert (told.json()["input"], told.json()["proposed"]) == ({"command": "b"}, {"command": "a"})
    site.works()
    assert site.world.done == [("shell.run", "b")]


def test_an_edit_that_the_tool_does_not_take_decides_nothing(api: Api, ann: User, site: Site) -> None:
    (gate,) = pending(site.runs(ann, *ONE_GATE))
    for payload in ({"cmd": "b"}, {"command": 1}, {}):
        error = error_of(api.post(address(gate, "approve"), {"digest": gate.digest, "input": payload}), 400)
        assert error["code"] == "invalid_input"
        assert error["fields"]
    assert decisions() == []


# Who


def test_who_decides_for_others_sees_all(ann: User, bob: User, kim: User) -> None:
    _, gate = asking(ann)
    decider = with_key(kim)
    assert [each["id"] for each in decider.get(LIST).json()["results"]] == [gate.pk]
    told = decider.post(address(gate, "approve"), {"digest": gate.digest}).json()
    assert told["approval"]["decided_by"] == f"user:{kim.pk}"


def test_others_see_nothing_of_it(ann: User, other: Api) -> None:
    """I11, T-49: not even whether it exists."""
    _, gate = asking(ann)
    assert other.get(f"{LIST}?state=all").json()["count"] == 0
    body = {"digest": gate.digest}
    for response in (
        other.get(address(gate)),
        *(other.post(address(gate, word), body) for word in ("approve", "reject")),
    ):
        assert said(response, 404) == "not_found"
    (verdict,) = other.post(f"{LIST}decide/", [{"id": gate.pk, "decision": "approve", **body}]).json()["results"]
    assert (verdict["status"], verdict["error"]["code"]) == (404, "not_found")
    assert decisions() == []


def test_an_owner_who_may_not_decide_is_told_so(ann: User) -> None:
    """Four eyes: they see it but cannot decide it."""
    ann.groups.clear()
    _, gate = asking(ann)
    api = with_key(ann)
    assert api.get(LIST).json()["count"] == 1
    assert said(api.post(address(gate, "approve"), {"digest": gate.digest}), 403) == "forbidden"


def test_a_permission_that_was_taken_away_counts_at_once(ann: User, kim: User) -> None:
    _, gate = asking(ann)
    decider = with_key(kim)
    kim.user_permissions.remove(Permission.objects.get(codename="decide_approval"))
    assert said(decider.post(address(gate, "approve"), {"digest": gate.digest}), 404) == "not_found"
    assert decisions() == []


# Several


def test_each_of_several_has_a_verdict_of_its_own(api: Api, ann: User, bob: User, site: Site) -> None:
    """S71: in the order sent; a refused decision does not stop the others."""
    first, second = pending(site.runs(ann, *TWO_GATES))
    _, theirs = asking(bob)
    sent = [
        {"id": second.pk, "digest": second.digest, "decision": "reject", "reason": "No."},
        {"id": theirs.pk, "digest": theirs.digest, "decision": "approve"},
        {"id": first.pk, "digest": "0" * 64, "decision": "approve"},
        {"id": first.pk, "digest": first.digest, "decision": "it_ran"},
        {"id": first.pk, "digest": first.digest, "decision": "approve", "input": {"command": "c"}},
        {"id": first.pk, "digest": first.digest, "decision": "reject"},
        {"id": 2**63 - 1, "digest": first.digest, "decision": "approve"},
    ]
    response = api.post(f"{LIST}decide/", sent)
    assert response.status_code == 200
    verdicts = response.json()["results"]
    assert [each["id"] for each in verdicts] == [each["id"] for each in sent]
    assert [each["status"] for each in verdicts] == [200, 404, 409, 400, 200, 409, 404]
    assert [each["error"]["code"] for each in verdicts if "error" in each] == [
        "not_found", "changed", "unknown_decision", "already_decided", "not_found"
    ]  # fmt: skip
    assert verdicts[0]["approval"]["approval"]["state"] == "rejected"
    site.works()
    assert site.world.done == [("shell.run", "c")]


@pytest.mark.parametrize("many", [0, 21])
def test_more_than_can_be_read_are_not_decided(api: Api, ann: User, many: int) -> None:
    """C14."""
    _, gate = asking(ann)
    error = error_of(
        api.post(f"{LIST}decide/", [{"id": gate.pk, "digest": gate.digest, "decision": "approve"}] * many), 400
    )
    assert error["code"] == "invalid"
    assert decisions() == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, ""),
        ([[]], "0"),
        ([{"id": "1"}], "0.id"),
        ([{"id": True}], "0.id"),
        ([{"id": 10**30}], "0.id"),
        ([{"decision": "yes"}], "0.decision"),
    ],
)
def test_a_list_that_cannot_be_taken_says_where(api: Api, body: object, field: str) -> None:
    assert field in error_of(api.post(f"{LIST}decide/", body), 400)["fields"]


def test_the_card_of_an_interrupted_call_is_answered(api: Api, ann: User) -> None:
    _, gate = interrupted(ann)
    told = api.get(address(gate)).json()
    assert (told["approval"]["ask"], told["approval"]["state"]) == ("interrupted", "pending")
    assert said(api.post(address(gate, "approve"), {"digest": gate.digest}), 400) == "unknown_decision"
    sent = [{"id": gate.pk, "digest": gate.digest, "decision": "it_did_not"}]
    (verdict,) = api.post(f"{LIST}decide/", sent).json()["results"]
    assert (verdict["status"], verdict["approval"]["approval"]["state"]) == (200, "answered")


def test_a_stopped_turn_has_nothing_to_decide(api: Api, ann: User) -> None:
    story, gate = asking(ann)
    cancel_prompt(story.prompt.pk, ann)
    error = error_of(api.post(address(gate, "approve"), {"digest": gate.digest}), 409)
    assert (error["code"], error["approval"]["approval"]["state"]) == ("already_decided", "cancelled")
    story.prompt.refresh_from_db()
    assert story.prompt.state == State.CANCELLED


@pytest.mark.django_db(transaction=True)
def test_of_twenty_programs_one_decides(ann: User, site: Site) -> None:
    """T-07: approve and reject mixed; the others are told who did."""
    people = [ann, *User.objects.bulk_create(User(username=f"p{n}", is_superuser=True) for n in range(19))]
    (gate,) = pending(site.runs(ann, *ONE_GATE))
    programs = [with_key(person) for person in people]

    def decides(n: int) -> int:
        response = programs[n].post(address(gate, "approve" if n % 2 else "reject"), {"digest": gate.digest})
        if response.status_code == 409:
            assert error_of(response, 409)["approval"]["approval"]["decided_by"].startswith("user:")
        return int(response.status_code)

    came_to = at_once(*[lambda n=n: decides(n) for n in range(20)])
    assert sorted(map(str, came_to)) == ["200", *["409"] * 19]
    site.works()
    assert len(site.world.done) <= 1
