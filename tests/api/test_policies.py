"""Starting policies over the API: `{policy, payload}` in place of an input."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile

from conversations.models import Prompt
from conversations.prompts.start import start_conversation
from tests.api.client import Api, error_of
from tests.conversations.recorded import Site
from tests.conversations.travel import ROME, installed

pytestmark = pytest.mark.django_db
PLAN = {"policy": "travel.plan", "payload": ROME}


@pytest.fixture
def ann(ann: User) -> User:
    """A user who may start policies."""
    ann.user_permissions.add(Permission.objects.get(codename="start_policy"))
    return ann


@pytest.fixture(autouse=True)
def _app(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(site, monkeypatch)


def prompts(owner: User) -> str:
    return f"/api/conversations/{start_conversation(owner).pk}/prompts/"


def test_a_policy_runs_in_place_of_the_agent(ann: User, api: Api, site: Site) -> None:
    response = api.post(prompts(ann), PLAN)
    assert response.status_code == 201
    told = response.json()
    assert (told["policy"], told["input"], told["origin"]) == ("travel.plan", "Plan a trip", "api")
    site.works()
    shown = api.get(response["Location"]).json()
    (read, asked) = shown["outputs"]
    assert (read["tool"], asked["result"]["type"], shown["state"]) == ("fx.read", "pending", "waiting_for_approval")
    rejected = {"digest": asked["approval"]["digest"], "reason": "Too dear."}
    assert api.post(f"/api/approvals/{asked['id']}/reject/", rejected).status_code == 200
    site.works()
    done = api.get(response["Location"]).json()
    assert (done["state"], done["stop_reason"]) == ("completed", "done")
    result = done["outputs"][-1]
    assert (result["type"], result["output"]) == ("result", {"booked": False, "why": "rejected"})


def test_the_same_key_starts_it_once(ann: User, api: Api) -> None:
    address = prompts(ann)
    first = api.post(address, PLAN, Idempotency_Key="k").json()
    assert api.post(address, PLAN, Idempotency_Key="k").json()["id"] == first["id"]
    other = {"policy": "travel.plan", "payload": ROME | {"days": 4}}
    assert error_of(api.post(address, other, Idempotency_Key="k"), 409)["code"] == "idempotency_conflict"
    assert error_of(api.post(address, PLAN), 409)["code"] == "turn_in_progress"


@pytest.mark.parametrize(
    ("payload", "fields"),
    [
        ({"city": "Rome"}, {"payload.days": ["Field required."]}),
        ({"city": 3, "days": 0}, {"payload.city", "payload.days"}),
        ({**ROME, "notes": ["a", 2]}, {"payload.notes.1"}),
        ({**ROME, "town": "x"}, {"payload.town"}),
        (None, {"payload.city", "payload.days"}),
    ],
)
def test_each_wrong_field_of_the_payload_is_named(ann: User, api: Api, payload: Any, fields: Any) -> None:
    body = {"policy": "travel.plan"} | ({} if payload is None else {"payload": payload})
    error = error_of(api.post(prompts(ann), body), 400)
    assert error["code"] == "invalid_input"
    assert set(error["fields"]) == set(fields)
    if isinstance(fields, dict):
        assert error["fields"] == fields
    assert not Prompt.objects.exists()


@pytest.mark.parametrize("name", ["no.such", "agent", "model", "human", "shell.run", "fx.read"])
def test_an_unknown_policy_is_404_and_neither_are_tools_started(ann: User, api: Api, name: str) -> None:
    error = error_of(api.post(prompts(ann), {"policy": name, "payload": {"command": "ls"}}), 404)
    assert error["code"] == "unknown_policy"
    assert not Prompt.objects.exists()


@pytest.mark.parametrize("name", ["travel.plan", "no.such"])
def test_who_may_start_none_gets_the_same_answer_for_each_name(bob: User, other: Api, name: str) -> None:
    error = error_of(other.post(prompts(bob), {"policy": name, "payload": ROME}), 403)
    assert error["code"] == "forbidden"


def test_nobody_starts_one_in_anothers_conversation(ann: User, bob: User, api: Api) -> None:
    assert error_of(api.post(prompts(bob), PLAN), 404)["code"] == "not_found"


@pytest.mark.parametrize(
    "body",
    [
        {"payload": ROME},
        PLAN | {"input": "Go."},
        PLAN | {"payload": "a text"},
        PLAN | {"payload": None, "policy": ""},
        PLAN | {"policy": 3},
    ],
)
def test_a_body_that_is_neither_is_invalid(ann: User, api: Api, body: dict[str, Any]) -> None:
    assert error_of(api.post(prompts(ann), body), 400)["code"] == "invalid"
    assert not Prompt.objects.exists()


def test_a_form_has_no_policy(ann: User, api: Api) -> None:
    file = SimpleUploadedFile("a.txt", b"a")
    error = error_of(api.send(prompts(ann), {"policy": "travel.plan", "files": file}), 400)
    assert error["fields"] == {"policy": ["There is no such field."]}


def test_a_key_without_the_scope_starts_none(ann: User, limited: Any) -> None:
    assert error_of(limited("read").post(prompts(ann), PLAN), 403)["code"] == "forbidden"
