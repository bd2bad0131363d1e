"""Grants over the API: given with an approval, listed, and revoked by whoever gave them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from conversations.models import Grant, Output
from tests.api.client import Api, error_of, with_key
from tests.conversations.approvals.test_grants import Writing, deciders, notes, world  # noqa: F401 - a fixture
from tests.conversations.recorded import Site, pending

pytestmark = pytest.mark.django_db

ANY_TEXT = {"field": "text", "operator": "any"}
BELOW = {
    "scope": "fields",
    "conditions": [{"field": "path", "operator": "starts_with", "value": "reports/"}, ANY_TEXT],
}


@pytest.fixture
def gate(ann: User, site: Site, world: Writing) -> Output:  # noqa: F811
    (gate,) = pending(site.runs(ann, *notes("reports/a")))
    return gate


def approve(api: Api, gate: Output, remember: Any) -> Any:
    return api.post(f"/api/approvals/{gate.pk}/approve/", {"digest": gate.digest, "remember": remember})


def test_an_approval_gives_it_and_the_answer_has_it(api: Api, ann: User, site: Site, gate: Output) -> None:
    told = api.get(f"/api/approvals/{gate.pk}/").json()
    assert told["approval"]["grantable"] == "fields"
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    answer = approve(api, gate, BELOW | {"uses": 2, "until": until, "this_conversation": False}).json()
    given = answer["grant"]
    assert (answer["approval"]["state"], given["scope"], given["conditions"]) == (
        "approved", "fields", [BELOW["conditions"][0], ANY_TEXT | {"value": None}]
    )  # fmt: skip
    assert (given["uses"], given["used"], given["conversation"], given["revoked_at"]) == (2, 0, None, None)
    assert (
        given["words"][0] == "note.write, without asking you, if path starts with “reports/” and text may be anything."
    )
    assert api.get("/api/grants/").json()["results"] == [given]
    site.works()
    assert deciders(site.runs(ann, *notes("reports/b"))) == [f"grant:{given['id']}"]
    assert api.get("/api/grants/").json()["results"][0]["used"] == 1


def test_without_remember_there_is_none(api: Api, gate: Output) -> None:
    answer = api.post(f"/api/approvals/{gate.pk}/approve/", {"digest": gate.digest}).json()
    assert (answer["grant"], Grant.objects.exists()) == (None, False)


@pytest.mark.parametrize(
    ("remember", "code", "fields"),
    [
        ({"scope": "fields"}, "invalid_grant", ["remember.conditions"]),
        (BELOW | {"conditions": [{"field": "path", "operator": "is", "value": "b"}]}, "invalid_grant",
         ["remember.conditions.path"]),
        (BELOW | {"until": "2020-01-01T00:00:00Z"}, "invalid_grant", ["remember.until"]),
        (BELOW | {"until": "tomorrow"}, "invalid", ["remember.until"]),
        (BELOW | {"uses": 0}, "invalid", ["remember.uses"]),
        ({"scope": "everything"}, "invalid", ["remember.scope"]),
        (BELOW | {"forever": True}, "invalid", ["remember.forever"]),
        ({"scope": "fields", "conditions": [{"field": "path", "operator": "like"}]}, "invalid",
         ["remember.conditions.0.operator"]),
        ("conversation", "invalid", ["remember"]),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_and_nothing_is_decided(
    api: Api, gate: Output, remember: Any, code: str, fields: list[str]
) -> None:
    error = error_of(approve(api, gate, remember), 400)
    assert (error["code"], list(error["fields"])) == (code, fields)
    gate.refresh_from_db()
    assert (gate.gate, Grant.objects.exists()) == ("pending", False)


def test_a_grant_is_revoked_by_its_person_with_a_key_that_decides(
    api: Api, ann: User, kim: User, site: Site, gate: Output
) -> None:
    given = approve(api, gate, BELOW).json()["grant"]
    site.works()
    address = f"/api/grants/{given['id']}/revoke/"
    assert error_of(with_key(kim, "decide").post(address), 404)
    assert error_of(with_key(ann, "read").post(address), 403)
    revoked = with_key(ann, "decide").post(address).json()
    assert revoked["revoked_at"]
    assert with_key(ann, "decide").post(address).json() == revoked
    assert api.get("/api/grants/").json()["results"] == []
    assert api.get("/api/grants/?state=all").json()["results"] == [revoked]
    assert list(error_of(api.get("/api/grants/?state=gone"), 400)["fields"]) == ["state"]
    assert deciders(site.runs(ann, *notes("reports/b"))) == []


def test_nobody_sees_those_of_others(api: Api, kim: User, gate: Output) -> None:
    approve(api, gate, BELOW)
    assert with_key(kim, "read").get("/api/grants/?state=all").json()["count"] == 0
