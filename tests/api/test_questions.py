"""Questions of policies over the API: what is told of one, and its answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.engine import Context
from conversations.models import Step
from conversations.push.event_reader import EventReader
from tests.api.client import Api, error_of, said, with_key
from tests.api.test_approvals import LIST, address
from tests.conversations.questions import TRIP, Trip, asked, outcome, waiting
from tests.conversations.recorded import Site, pending

pytestmark = pytest.mark.django_db


def test_a_question_is_told_whole(api: Api, ann: User, site: Site) -> None:
    """What a page shows: the question, what may be answered, and until when; then the answer, by whom and how."""
    prompt, gate = asked(site, ann, "Which?", choices=["a\u202e", "b"])
    (told,) = api.get(f"{LIST}?state=pending").json()["results"]
    assert (told["tool"], told["approval"]["ask"], told["approval"]["reason"]) == ("human", "question", "Which?")
    assert (told["input"]["question"], told["input"]["choices"]) == ("Which?", ["a\u202e", "b"])
    assert told["approval"]["expires_at"]
    answered = api.post(address(gate, "answer"), {"digest": told["approval"]["digest"], "answer": "b"})
    assert answered.status_code == 200, answered.content
    after = answered.json()
    assert (after["approval"]["state"], after["approval"]["via"]) == ("answered", "api")
    assert after["approval"]["decided_by"] == f"user:{ann.pk}"
    assert after["result"]["output"] == {"decision": "answer", "answer": "b", "via": "api", "digest": gate.digest}
    assert outcome(site, prompt) == "b"


def test_a_form_is_told_as_a_schema(api: Api, ann: User, site: Site) -> None:
    prompt, gate = asked(site, ann, Trip)
    schema = api.get(address(gate)).json()["input"]["schema"]
    assert schema["propertyOrder"][:2] == ["city", "nights"]
    wrong = error_of(api.post(address(gate, "answer"), {"digest": gate.digest, "answer": {"city": 5, "tags": 1}}), 400)
    assert wrong["code"] == "invalid_answer"
    assert wrong["fields"]["answer.nights"] == ["Enter a value."]
    assert wrong["fields"]["answer.city"] == ["Enter a text."]
    assert wrong["fields"]["answer.tags"]
    refused = {"digest": gate.digest, "answer": TRIP | {"city": "Nowhere"}}
    assert api.post(address(gate, "answer"), refused).status_code == 200
    site.works()
    again = api.get(address(gate)).json()
    assert again["input"]["draft"] == TRIP | {"city": "Nowhere"}
    assert "no such city" in again["input"]["problems"]["city"][0]
    stale = error_of(api.post(address(gate, "answer"), refused), 409)
    assert (stale["code"], stale["approval"]["approval"]["digest"]) == ("changed", again["approval"]["digest"])
    good = {"digest": again["approval"]["digest"], "answer": TRIP}
    assert api.post(address(gate, "answer"), good).status_code == 200
    assert outcome(site, prompt)["nights"] == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "answer"),
        ({"answer": "a"}, "digest"),
        ({"digest": "0" * 64}, "answer"),
        ({"digest": "0" * 63, "answer": "a"}, "digest"),
        ({"digest": "0" * 64, "answer": "a\x00"}, "answer"),
        ({"digest": "0" * 64, "answer": "a", "reason": "b"}, "reason"),
    ],
)
def test_what_is_no_request_says_why(api: Api, ann: User, site: Site, body: dict[str, Any], field: str) -> None:
    _, gate = asked(site, ann, "Which?")
    assert field in error_of(api.post(address(gate, "answer"), body), 400)["fields"]
    assert pending(gate.prompt)


def test_the_second_is_told_what_was_answered_and_by_whom(api: Api, ann: User, kim: User, site: Site) -> None:
    """And the same, sent again, is the same."""
    _, gate = asked(site, ann, "Which?")
    sent = {"digest": gate.digest, "answer": "This."}
    first, again = api.post(address(gate, "answer"), sent), api.post(address(gate, "answer"), sent)
    assert (first.status_code, first.json()) == (200, again.json())
    late = error_of(with_key(kim).post(address(gate, "answer"), {"digest": gate.digest, "answer": "That."}), 409)
    assert late["code"] == "already_decided"
    assert late["approval"]["result"]["output"]["answer"] == "This."
    assert late["approval"]["approval"]["decided_by"] == f"user:{ann.pk}"


def test_answers_are_among_several_decisions(api: Api, ann: User, site: Site) -> None:
    async def program(ctx: Context) -> Any:
        one, two, three = (ctx.ask("?", key="a"), ctx.ask("?", choices=["x"], key="b"), ctx.approve("Go?", key="c"))
        return await ctx.gather(one, two, three)

    prompt, _ = waiting(site, ann, program)
    one, two, three = pending(prompt)
    sent = [
        {"id": one.pk, "decision": "answer", "digest": one.digest, "answer": "Words."},
        {"id": two.pk, "decision": "answer", "digest": two.digest, "answer": "y"},
        {"id": three.pk, "decision": "approve", "digest": three.digest},
    ]
    results = api.post(f"{LIST}decide/", sent).json()["results"]
    assert [each["status"] for each in results] == [200, 400, 200]
    assert results[1]["error"]["fields"]["answer"]
    api.post(f"{LIST}decide/", [sent[1] | {"answer": "x"}])
    assert outcome(site, prompt) == ["Words.", "x", True]


def test_who_may_not_answer(api: Api, other: Api, ann: User, site: Site) -> None:
    """A stranger finds nothing; a key without `decide`, and whoever asked where somebody else must answer, may not."""
    _, gate = asked(site, ann, "Which?", who="another")
    sent = {"digest": gate.digest, "answer": "a"}
    assert said(other.post(address(gate, "answer"), sent), 404) == "not_found"
    assert said(with_key(ann, "read", "chat").post(address(gate, "answer"), sent), 403) == "forbidden"
    assert said(api.post(address(gate, "answer"), sent), 403) == "four_eyes"
    assert said(api.post(address(gate, "approve"), {"digest": gate.digest}), 400) == "unknown_decision"
    assert pending(gate.prompt)


def test_events_tell_questions_and_answers(api: Api, ann: User, site: Site) -> None:
    prompt, gate = asked(site, ann, Trip)
    api.post(address(gate, "answer"), {"digest": gate.digest, "answer": TRIP | {"city": "Nowhere"}})
    site.works()
    (again,) = pending(prompt)
    api.post(address(gate, "answer"), {"digest": again.digest, "answer": TRIP})
    site.works()
    events = [(each.type, json.loads(each.text)) for each in EventReader(prompt.conversation_id, 0).read()]
    requested = [told["output"] for kind, told in events if kind == "approval.requested"]
    decided = [told["output"] for kind, told in events if kind == "approval.decided"]
    assert [output["input"].get("draft") for output in requested] == [None, TRIP | {"city": "Nowhere"}]
    assert [output["result"]["output"]["answer"]["city"] for output in decided] == ["Nowhere", "Lisbon"]
    assert {output["id"] for output in requested + decided} == {gate.pk}
    assert Step.objects.filter(prompt=prompt, type="resume").count() == 2
