"""Workflows over the API: what there is, one's own runs, and starting one, with each way in which it is refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from pydantic import BaseModel, Field

from conversations.models import Conversation, Prompt, Quota
from conversations.prompts.killswitch import turn_on
from conversations.prompts.start import cancel_prompt, start_conversation, start_prompt
from conversations.push.share import shares
from tests.api.client import Api, error_of, said, with_key
from tests.conversations.recorded import Site, at_once, pending
from tests.workflows import shop
from workflows import Category, Flow, workflow
from workflows.models import WorkflowSetting

pytestmark = pytest.mark.django_db
PAPER = {"parameters": {"item": "paper"}}
RUN = "/api/workflows/shop.order/run/"
BOOKS = Category("books", "Books", "file", 2)


class Stop(BaseModel):
    city: str = Field(min_length=2)


class Tour(BaseModel):
    stops: list[Stop]


@workflow("shop.close", title="Close", category=BOOKS, permission="auth.delete_user", confirm=True, schedulable=False)
async def close(flow: Flow[Any]) -> str:
    """Closes the shop."""
    return "Closed."


@workflow("shop.tour", title="A tour", category=BOOKS)
async def tour(flow: Flow[Tour]) -> str:
    """Goes from place to place."""
    return f"Went to {len(flow.input.stops)} places."


ALL = (close, tour, shop.order, shop.fail)


@pytest.fixture(autouse=True)
def _installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Any:
    cache.clear()
    with shop.installed(site, monkeypatch, workflows=ALL) as provider:
        yield provider


@pytest.fixture
def api(ann: User) -> Api:
    return with_key(ann)


# What there is


def test_the_list_is_of_what_one_may_run(api: Api) -> None:
    page = api.get("/api/workflows/").json()
    assert (page["count"], page["next"], page["previous"]) == (3, None, None)
    assert [each["name"] for each in page["results"]] == ["shop.tour", "shop.order", "shop.fail"]
    assert page["results"][1] == {
        "name": "shop.order",
        "title": "Order something",
        "description": "Orders pieces of an item, with an approval.",
        "category": "shop",
        "schema": shop.order.schema,
        "permission": None,
        "may_run": True,
        "why_not": None,
        "confirm": False,
        "schedulable": True,
    }


def test_the_list_has_pages(api: Api) -> None:
    first = api.get("/api/workflows/?page_size=2").json()
    second = api.get(first["next"]).json()
    assert [each["name"] for each in (*first["results"], *second["results"])] == [
        "shop.tour",
        "shop.order",
        "shop.fail",
    ]
    assert (second["next"], second["count"]) == (None, 3)
    assert api.get(second["previous"]).json() == first
    assert said(api.get("/api/workflows/?page=3&page_size=2"), 404) == "not_found"
    assert said(api.get("/api/workflows/?page_size=0"), 400) == "invalid"


def test_what_is_listed_to_others_has_the_reason(api: Api) -> None:
    WorkflowSetting.objects.create(name="shop.close", permission="auth.delete_user", list_to_others=True)
    shown = api.get("/api/workflows/").json()["results"][0]
    assert shown == api.get("/api/workflows/shop.close/").json()
    assert {name: shown[name] for name in ("name", "may_run", "permission", "confirm", "schedulable")} == {
        "name": "shop.close", "may_run": False, "permission": "auth.delete_user", "confirm": True, "schedulable": False,
    }  # fmt: skip
    assert shown["why_not"].startswith("It needs the permission auth.delete_user")


@pytest.mark.parametrize("ending", ["", "runs/", "run/"])
@pytest.mark.parametrize("name", ["no.such", "shell.run", "agent", "workflow:shop.order"])
def test_there_is_no_other_and_a_tool_is_none(api: Api, name: str, ending: str) -> None:
    ask = api.post if ending == "run/" else api.get
    assert said(ask(f"/api/workflows/{name}/{ending}"), 404) == "unknown_workflow"
    assert not Prompt.objects.exists()


def test_one_that_is_not_listed_is_forbidden(api: Api) -> None:
    assert said(api.get("/api/workflows/shop.close/"), 403) == "forbidden"


@pytest.mark.parametrize("address", ["/workflows/categories", "/api/workflows/categories/"])
def test_categories_are_of_what_one_sees(api: Api, ann: User, address: str) -> None:
    books, of_shop = (
        {"id": "books", "name": "Books", "icon": "file", "order": 2, "count": 1},
        {"id": "shop", "name": "Shop", "icon": "box", "order": 5, "count": 2},
    )
    assert api.get(address).json() == [books, of_shop]
    browser = Client()
    browser.force_login(ann)
    assert browser.get(address).json() == [books, of_shop]
    WorkflowSetting.objects.create(name="shop.close", enabled=False, list_to_others=True)
    for name in ("shop.order", "shop.fail"):
        WorkflowSetting.objects.create(name=name, enabled=False)
    assert api.get(address).json() == [books | {"count": 2}]


@pytest.mark.parametrize(
    "address",
    ["/workflows/categories", "/api/workflows/categories/", "/api/workflows/", "/api/workflows/shop.order/"],
)
def test_strangers_are_told_in_json_to_say_who_they_are(db: None, address: str) -> None:
    assert said(Client().get(address), 401) == "not_authenticated"
    assert said(Api("wrong").get(address), 401) == "bad_key"
    assert said(Client().post(RUN), 401) == "not_authenticated"


# Starting


def test_a_run_starts_in_a_conversation_of_its_own(api: Api, ann: User, site: Site) -> None:
    response = api.post(RUN, {"parameters": {"item": "paper", "pieces": 3}})
    assert response.status_code == 202
    told = response.json()
    assert response["Location"] == f"/api/prompts/{told['id']}/"
    assert {name: told[name] for name in ("policy", "origin", "input", "state")} == {
        "policy": "workflow:shop.order", "origin": "api", "input": "/shop.order item=paper pieces=3",
        "state": "queued",
    }  # fmt: skip
    assert Conversation.objects.get().kind == "run"
    site.works()
    run = Prompt.objects.get()
    (gate,) = pending(run)
    assert api.post(f"/api/approvals/{gate.pk}/approve/", {"digest": gate.digest}).status_code == 200
    site.works()
    done = api.get(response["Location"]).json()
    assert (done["state"], done["outputs"][-1]["output"]) == ("completed", {"ordered": "paper"})


def test_a_run_in_a_conversation_takes_its_slot(api: Api, ann: User, bob: User) -> None:
    chat = start_conversation(ann)
    first = api.post(RUN, PAPER | {"conversation": chat.pk})
    assert (first.status_code, first.json()["conversation"]) == (202, chat.pk)
    error = error_of(api.post(RUN, PAPER | {"conversation": chat.pk}), 409)
    assert (error["code"], error["prompt"]) == ("turn_in_progress", first.json()["id"])
    assert said(with_key(bob).post(RUN, PAPER | {"conversation": chat.pk}), 404) == "not_found"
    assert Prompt.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "parameters", "errors"),
    [
        ("shop.order", {"item": "a", "pieces": 1000}, {"item", "pieces"}),
        ("shop.order", {"item": "paper", "size": 1, "color": 2}, {"size", "color"}),
        ("shop.order", {"item": "paper", "pieces": "3"}, {"pieces"}),
        ("shop.order", {}, {"item": ["Field required."]}),
        ("shop.tour", {"stops": [{"city": "Rome"}, {"city": 3}, {"town": "x"}]}, {"stops/1/city", "stops/2/city"}),
        ("shop.order", {"item": "x" * 200_001}, {""}),
    ],
)
def test_bad_input_is_told_by_place_and_starts_nothing(api: Api, name: str, parameters: Any, errors: Any) -> None:
    error = error_of(api.post(f"/api/workflows/{name}/run/?wait=5", {"parameters": parameters}), 400)
    assert (error["code"], set(error["errors"])) == ("invalid_input", set(errors))
    if isinstance(errors, dict):
        assert error["errors"] == errors
    assert all(re.fullmatch(r"[A-Z].*[^.]\.", why) for whys in error["errors"].values() for why in whys)
    assert not Conversation.objects.exists()


@pytest.mark.parametrize(
    "body",
    [{"parameters": "a"}, PAPER | {"conversation": "1"}, PAPER | {"conversation": 0}, PAPER | {"input": "x"}, []],
)
def test_a_body_of_another_shape_is_invalid(api: Api, body: Any) -> None:
    assert said(api.post(RUN, body), 400) == "invalid"
    assert not Conversation.objects.exists()


@pytest.mark.parametrize("seconds", ["0", "31", "-1", "1.5", "", "all", "005", "²"])
def test_the_time_to_wait_is_1_to_30_seconds(api: Api, seconds: str) -> None:
    error = error_of(api.post(f"{RUN}?wait={seconds}", PAPER), 400)
    assert (error["code"], error["fields"]) == ("invalid", {"wait": ["Write a whole number of seconds, 1 to 30."]})
    assert not Conversation.objects.exists()


def test_who_may_not_run_it_is_told_why(api: Api) -> None:
    error = error_of(api.post("/api/workflows/shop.close/run/"), 403)
    assert (error["code"], error["message"][:40]) == ("forbidden", "It needs the permission auth.delete_user")
    assert not Conversation.objects.exists()


def test_a_key_needs_the_scope_to_start_workflows(ann: User) -> None:
    for scope in ("read", "chat", "decide", "passthrough"):
        assert "lacks the scope 'workflows'" in error_of(with_key(ann, scope).post(RUN, PAPER), 403)["message"]
    assert with_key(ann, "read").get("/api/workflows/").status_code == 200
    assert not Prompt.objects.exists()
    assert with_key(ann, "workflows").post(RUN, PAPER).status_code == 202


def test_a_key_that_starts_runs_stops_repeats_and_reads_them(ann: User) -> None:
    """Another that only chats may stop them, like any turn; to start them again would be to start a workflow."""
    starting, chatting = with_key(ann, "workflows"), with_key(ann, "chat")
    run = starting.post(RUN, PAPER).json()
    address = f"/api/prompts/{run['id']}/"
    assert starting.post(f"{address}cancel/").json()["state"] == "cancelled"
    for words in ("again/", "continue/"):
        assert "lacks the scope 'workflows'" in error_of(chatting.post(f"{address}{words}"), 403)["message"]
    again = starting.post(f"{address}again/")
    assert (again.status_code, again.json()["repeats"]) == (201, run["id"])
    assert starting.get(f"/api/prompts/{again.json()['id']}/").status_code == 200
    assert chatting.post(f"/api/prompts/{again.json()['id']}/cancel/").json()["state"] == "cancelled"


def test_a_key_for_workflows_has_no_say_in_chats(ann: User) -> None:
    """It starts no turn in them but runs, and stops none."""
    talk = start_conversation(ann)
    turn, starting, chatting = start_prompt(talk, ann, "Hi."), with_key(ann, "workflows"), with_key(ann, "chat")
    address = f"/api/conversations/{talk.pk}/prompts/"
    refused = [(address, {"input": "Hi."}), *[(f"/api/prompts/{turn.pk}/{word}/", {}) for word in ("cancel", "again")]]
    for path, body in refused:
        assert "lacks the scope 'chat':" in error_of(starting.post(path, body), 403)["message"], path
    assert said(starting.post("/api/conversations/"), 403) == "forbidden"
    turn.refresh_from_db()
    assert not turn.ended
    cancel_prompt(turn.pk, ann)
    run = {"policy": "workflow:shop.order", "payload": PAPER["parameters"]}
    assert "lacks the scope 'workflows':" in error_of(chatting.post(address, run), 403)["message"]
    assert starting.post(address, run).status_code == 201
    assert Prompt.objects.count() == 2


def test_a_session_needs_a_token(ann: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(ann)
    assert said(Api(client=browser).post(RUN, PAPER), 403) == "csrf_failed"


def test_starts_are_limited_with_those_of_turns(api: Api, settings: Any) -> None:
    settings.AGENTSITE_API_STARTS = 1
    assert api.post(RUN, PAPER).status_code == 202
    assert said(api.post(RUN, PAPER), 429) == "throttled"
    assert api.get("/api/workflows/").status_code == 200


def test_quota_and_kill_switch_start_nothing(api: Api, ann: User) -> None:
    Quota.objects.create(user=ann, running_prompts=1)
    assert api.post(RUN, PAPER).status_code == 202
    assert said(api.post(RUN, PAPER), 429) == "over_quota"
    turn_on(ann, "A test.")
    assert said(api.post("/api/workflows/shop.fail/run/"), 503) == "stopped"
    assert Prompt.objects.count() == 1


# The same request twice


def test_the_same_key_returns_the_same_run(api: Api, ann: User) -> None:
    first = api.post(RUN, PAPER, Idempotency_Key="k")
    assert api.post(RUN, PAPER, Idempotency_Key="k").json() == first.json()
    cancel_prompt(first.json()["id"], ann)
    again = api.post(RUN, PAPER, Idempotency_Key="k")
    assert (again.status_code, again.json()["id"], again.json()["state"]) == (202, first.json()["id"], "cancelled")
    assert api.post(f"{RUN}?wait=30", PAPER, Idempotency_Key="k").status_code == 200
    other = error_of(api.post(RUN, {"parameters": {"item": "pens"}}, Idempotency_Key="k"), 409)
    assert (other["code"], other["prompt"]) == ("idempotency_conflict", first.json()["id"])
    assert Prompt.objects.count() == 1


def test_a_key_holds_also_where_the_slot_is_taken(api: Api, ann: User) -> None:
    chat = start_conversation(ann)
    body = PAPER | {"conversation": chat.pk}
    first = api.post(RUN, body, Idempotency_Key="k").json()
    assert api.post(RUN, body, Idempotency_Key="k").json()["id"] == first["id"]


@pytest.mark.django_db(transaction=True)
def test_of_ten_same_requests_at_once_one_starts(ann: User) -> None:
    programs = [with_key(ann) for _ in range(10)]
    came_to = at_once(*[lambda one=one: one.post(RUN, PAPER, Idempotency_Key="k") for one in programs])
    assert Counter(getattr(each, "status_code", each) for each in came_to) == {202: 10}
    assert {each.json()["id"] for each in came_to} == {Prompt.objects.get().pk}  # type: ignore[union-attr]
    assert Conversation.objects.count() == 1


# Waiting


def answered(user: User, name: str, seconds: int, body: Any, *meanwhile: Callable[[], object]) -> Any:
    """Return the answer to a request that waits, while others do these things once the run is there."""
    before = Prompt.objects.count()

    def others() -> None:
        shop.until(lambda: Prompt.objects.count() > before)
        for each in meanwhile:
            each()

    address = f"/api/workflows/{name}/run/?wait={seconds}"
    answer, raised = at_once(lambda: with_key(user).post(address, body), others)
    assert raised is None
    assert shares._open == {}
    return answer


@pytest.mark.django_db(transaction=True)
def test_a_client_that_waits_is_told_the_end(ann: User, site: Site) -> None:
    response = answered(ann, "shop.tour", 30, {"parameters": {"stops": []}}, site.works)
    told = response.json()
    assert (response.status_code, told["state"], told["stop_reason"]) == (200, "completed", "done")
    assert told["outputs"][-1]["output"] == "Went to 0 places."
    assert response["Location"] == f"/api/prompts/{told['id']}/"


@pytest.mark.django_db(transaction=True)
def test_a_run_that_fails_has_ended_too(ann: User, site: Site) -> None:
    response = answered(ann, "shop.fail", 30, {}, site.works)
    assert (response.status_code, response.json()["state"]) == (200, "failed")


@pytest.mark.django_db(transaction=True)
def test_one_that_waits_for_a_person_meanwhile_is_awaited_too(ann: User, site: Site) -> None:
    def approve() -> None:
        site.approves(Prompt.objects.get(), ann)

    response = answered(ann, "shop.order", 30, PAPER, site.works, approve, site.works)
    assert (response.status_code, response.json()["state"]) == (200, "completed")


@pytest.mark.django_db(transaction=True)
def test_after_the_time_the_answer_is_the_prompt_as_it_started(ann: User, site: Site) -> None:
    response = answered(ann, "shop.order", 1, PAPER, site.works)
    assert (response.status_code, response.json()["state"]) == (202, "queued")


@pytest.mark.django_db(transaction=True)
def test_in_a_chat_the_end_of_another_turn_is_not_its_end(ann: User, site: Site) -> None:
    chat = start_conversation(ann)

    def another_ends() -> None:
        cancel_prompt(start_prompt(chat, None, "Hello.").pk, ann)  # the system's is queued, and the slot stays taken

    body = {"parameters": {"stops": []}, "conversation": chat.pk}
    response = answered(ann, "shop.tour", 2, body, another_ends)
    assert (response.status_code, Prompt.objects.get(input="Hello.").state) == (202, "cancelled")


def test_who_has_too_many_streams_open_cannot_wait(api: Api, settings: Any) -> None:
    settings.AGENTSITE_STREAMS = 0
    assert said(api.post(f"{RUN}?wait=1", PAPER), 429) == "throttled"
    assert not Prompt.objects.exists()
    assert api.post(RUN, PAPER).status_code == 202


# One's own runs


def test_runs_are_ones_own_the_newest_first(api: Api, ann: User, bob: User, site: Site) -> None:
    assert with_key(bob).post("/api/workflows/shop.fail/run/").status_code == 202
    ids = [api.post("/api/workflows/shop.fail/run/").json()["id"] for _ in range(2)]
    api.post("/api/workflows/shop.tour/run/", {"parameters": {"stops": []}})
    site.works()
    page = api.get("/api/workflows/shop.fail/runs/?page_size=1").json()
    assert (page["count"], [each["id"] for each in page["results"]]) == (2, ids[:0:-1])
    assert [each["id"] for each in api.get(page["next"]).json()["results"]] == ids[:1]
    (failed,) = page["results"]
    assert (failed["state"], failed["input"], failed["result"]) == (
        "failed",
        "/shop.fail",
        "ValueError: The shop is closed.",
    )
    (went,) = api.get("/api/workflows/shop.tour/runs/").json()["results"]
    assert (went["state"], went["result"]) == ("completed", "Went to 0 places.")


def test_a_run_that_has_not_ended_has_no_result(api: Api, site: Site) -> None:
    api.post(RUN, PAPER)
    (run,) = api.get("/api/workflows/shop.order/runs/").json()["results"]
    assert (run["state"], run["result"]) == ("queued", None)


def test_runs_stay_with_who_may_run_it_no_more(api: Api) -> None:
    api.post(RUN, PAPER)
    WorkflowSetting.objects.create(name="shop.order", enabled=False)
    assert api.get("/api/workflows/shop.order/runs/").json()["count"] == 1
