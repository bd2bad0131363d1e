"""Batches over the API: nothing starts while something is wrong, and each refusal says what and where."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache

from conversations.models import Prompt, Quota
from conversations.prompts.start import begin_conversation
from tests.api.client import Api, error_of, said, with_key
from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.workflows import batches, shop
from tests.workflows.batches import of
from workflows.batches.starting import stop_batch
from workflows.models import Batch, WorkflowSetting

pytestmark = pytest.mark.django_db
START = "/api/workflows/shop.parcel/batch/"


@pytest.fixture(autouse=True)
def _installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    cache.clear()
    with shop.installed(site, monkeypatch, workflows=batches.ALL):
        yield


@pytest.fixture
def api(ann: User) -> Api:
    return with_key(ann)


def test_from_the_lines_to_the_results(api: Api, ann: User, site: Site) -> None:
    response = api.post(START, {"lines": [{"item": "paper"}, {"item": "glass", "days": 3}]})
    assert response.status_code == 202
    batch = response.json()
    assert batch["counts"] == {"queued": 2}
    assert response["Location"] == f"/api/workflows/batches/{batch['id']}/"
    site.works()
    lines = api.get(response["Location"]).json()["lines"]
    assert [(line["line"], line["input"], line["state"]) for line in lines] == [
        (1, {"item": "paper"}, "completed"),
        (2, {"item": "glass", "days": 3}, "failed"),
    ]
    assert lines[0]["result"] == "Sent paper."
    assert "It broke." in lines[1]["reason"]
    assert api.get("/api/workflows/batches/").json()["results"][0]["counts"] == {"completed": 1, "failed": 1}
    assert {line["prompt"] for line in lines} == set(Prompt.objects.values_list("pk", flat=True))


def test_its_runs_were_started_by_the_api(api: Api, ann: User) -> None:
    api.post(START, {"lines": [{"item": "paper"}]})
    of(ann, "pens")
    counts = [api.get(f"/api/workflows/runs/?started_by={how}").json()["count"] for how in ("api", "site")]
    assert counts == [1, 1]


def test_csv_does_the_same(api: Api, ann: User) -> None:
    batch = api.post(START, {"csv": "Item;Labels\npaper;this\n"}).json()
    assert batch["lines"][0]["input"] == {"item": "paper", "labels": ["this"]}


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ({"lines": [{"item": "paper"}, {"item": "p", "map": {"a": "b"}}]}, {"2/item", "2/map/a"}),
        ({"csv": "item,days\npaper,many"}, {"1/days"}),
        ({"csv": "colour\nred"}, {""}),
        ({"lines": []}, {""}),
    ],
)
def test_each_wrong_place_is_named_and_nothing_starts(body: dict[str, object], errors: set[str], api: Api) -> None:
    error = error_of(api.post(START, body), 400)
    assert error["code"] == "invalid_input"
    assert set(error["errors"]) == errors
    assert (Batch.objects.count(), Prompt.objects.count()) == (0, 0)


@pytest.mark.parametrize("body", [{}, {"lines": [], "csv": ""}, {"lines": [1]}])
def test_either_lines_or_csv_is_sent(body: dict[str, object], api: Api) -> None:
    assert said(api.post(START, body), 400) == "invalid"


def test_refusals(api: Api, ann: User) -> None:
    lines = {"lines": [{"door": "front"}]}
    assert said(api.post("/api/workflows/shop.key/batch/", lines), 400) == "no_batch"
    assert said(api.post("/api/workflows/shop.none/batch/", lines), 404) == "unknown_workflow"
    WorkflowSetting.objects.create(name="shop.parcel", enabled=False)
    assert said(api.post(START, {"lines": [{"item": "paper"}]}), 403) == "forbidden"


def test_a_key_starts_one_batch_and_none_is_the_sites_own(api: Api, ann: User) -> None:
    body = {"lines": [{"item": "paper"}]}
    first = api.post(START, body, Idempotency_Key="k").json()["id"]
    assert api.post(START, body, Idempotency_Key="k").json()["id"] == first
    other = {"lines": [{"item": "pens"}]}
    assert said(api.post(START, other, Idempotency_Key="k"), 409) == "idempotency_conflict"
    run = "/api/workflows/shop.parcel/run/"
    assert said(api.post(run, {"parameters": {"item": "pens"}}, Idempotency_Key="batch:1:1"), 400) == "invalid"
    assert Prompt.objects.count() == 1


def test_over_a_quota_it_is_accepted_and_waits(api: Api, ann: User) -> None:
    Quota.objects.create(user=ann, running_prompts=1)
    begin_conversation(ann, "Hello.")
    batch = api.post(START, {"lines": [{"item": "paper"}]}).json()
    assert batch["counts"] == {"waits": 1}
    assert "limit" in batch["holds"]


def test_stopping(api: Api, ann: User) -> None:
    batch = of(ann, *["gold"] * 6)
    stop = f"/api/workflows/batches/{batch.pk}/stop/"
    stopped = api.post(stop, {}).json()
    assert (stopped["counts"], bool(stopped["stopped_at"])) == ({"queued": 5, "not_started": 1}, True)
    assert api.post(stop, {"running": True}).json()["counts"] == {"cancelled": 5, "not_started": 1}


def test_deleting(api: Api, ann: User) -> None:
    batch = of(ann, *["gold"] * 6)
    at = f"/api/workflows/batches/{batch.pk}/"
    assert error_of(api.delete(at), 409) | {"message": ""} == {
        "code": "batch_in_progress",
        "message": "",
        "batch": batch.pk,
    }
    api.post(f"{at}stop/", {"running": True})
    assert [api.delete(at).status_code, api.delete(at).status_code] == [204, 404]
    assert (Batch.objects.count(), Prompt.objects.count()) == (0, 5)
    others = of(person("bob"), "paper")
    stop_batch(others, running=True)
    assert api.delete(f"/api/workflows/batches/{others.pk}/").status_code == 404


def test_a_key_needs_the_scope_for_workflows(ann: User) -> None:
    """Whoever may stop turns may stop a batch of them."""
    starting, chatting, lines = with_key(ann, "workflows"), with_key(ann, "chat"), {"lines": [{"item": "gold"}] * 6}
    assert "lacks the scope 'workflows':" in error_of(chatting.post(START, lines), 403)["message"]
    assert not Batch.objects.exists()
    at = starting.post(START, lines)["Location"]
    assert chatting.post(f"{at}stop/", {}).json()["counts"] == {"queued": 5, "not_started": 1}
    assert starting.post(f"{at}stop/", {"running": True}).json()["counts"] == {"cancelled": 5, "not_started": 1}
    assert said(with_key(ann, "read").post(f"{at}stop/", {}), 403) == "forbidden"
    assert said(chatting.delete(at), 403) == "forbidden"
    assert starting.delete(at).status_code == 204


def test_nobody_elses(api: Api) -> None:
    batch = of(person("bob"), "paper")
    at = f"/api/workflows/batches/{batch.pk}/"
    assert [api.get(at).status_code, api.post(f"{at}stop/", {}).status_code] == [404, 404]
    assert api.get("/api/workflows/batches/").json()["count"] == 0
