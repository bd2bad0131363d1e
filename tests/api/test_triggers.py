"""Triggers over the API: made, changed, paused, run and deleted by their owner, with their history."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from conversations.models import Account, Conversation, Firing, Prompt, State, Trigger
from conversations.prompts.start import start_conversation
from conversations.triggers import managing
from tests.api.client import JSON, Api, error_of
from tests.conversations.recorded import ONE_GATE, Site
from tests.conversations.travel import ROME, installed
from tests.conversations.triggers.conftest import StillClock, clock
from tests.workflows import shop

__all__ = ["clock"]

pytestmark = pytest.mark.django_db

URL = "/api/triggers/"
LOGS = {"text": "look at the logs", "every_seconds": 300}
ORDER = {"workflow": "shop.order", "input": {"item": "paper"}, "cron": "0 9 * * 1-5"}


@pytest.fixture(autouse=True)
def _berlin(ann: User, clock: StillClock) -> None:
    """Ann lives in Berlin; it is Monday, 2 March 2026, 12:00 UTC."""
    Account.objects.update_or_create(user=ann, defaults={"zone": "Europe/Berlin"})


@pytest.fixture
def _shop(monkeypatch: pytest.MonkeyPatch) -> Any:
    with shop.registered(monkeypatch, shop.order):
        yield


def made(api: Api, **fields: Any) -> dict[str, Any]:
    response = api.post(URL, fields)
    assert response.status_code == 201, response.content
    found: dict[str, Any] = response.json()
    return found


def patch(api: Api, pk: int, body: Any) -> Any:
    return api.client.patch(f"{URL}{pk}/", body, content_type=JSON, headers=api._with_key({}))


def test_one_that_repeats_says_when_in_words_and_in_dates(api: Api) -> None:
    response = api.post(URL, {**LOGS, "cron": "30 2 * * *", "every_seconds": None, "tier": "high"})
    told = response.json()
    assert response["Location"] == f"{URL}{told['id']}/"
    assert (told["when"], told["state"], told["zone"]) == ("every day at 02:30 Europe/Berlin", "on", "Europe/Berlin")
    assert (told["name"], told["policy"], told["text"], told["input"]) == (LOGS["text"], "agent", LOGS["text"], None)
    assert (told["tier"], told["overlap"], told["conversation"]) == ("high", "skip", None)
    assert told["next_at"] == told["next"][0]["at"] == "2026-03-03T01:30:00+00:00"
    assert [len(told["next"]), told["next"][0]["words"]] == [5, "Tue 3 Mar 2026, 02:30"]
    assert api.get(response["Location"]).json() == told


def test_the_preview_says_what_the_clocks_do(api: Api, clock: StillClock) -> None:
    clock.at(2026, 3, 27, 12)
    notes = [each["note"] for each in made(api, text="wake me", cron="30 2 * * *")["next"]]
    assert notes[0] is None
    assert notes[1] == "The clocks go forward: there is no 02:30 that night."


@pytest.mark.parametrize("at", ["2026-03-02T14:00", "2026-03-02T13:00:00Z", "2026-03-02T08:00-05:00"])
def test_one_that_fires_once_does_so_in_a_chat_of_theirs(api: Api, ann: User, clock: StillClock, at: str) -> None:
    """A time without an offset is local."""
    chat = start_conversation(ann, "Logs")
    told = made(api, text="look", at=at, conversation=chat.pk)
    assert (told["when"], told["conversation"]) == ("once, on Mon 2 Mar 2026, 14:00 Europe/Berlin", chat.pk)
    assert clock.passes(hours=1) == 1
    over = api.get(f"{URL}{told['id']}/").json()
    assert (over["state"], over["next_at"], over["next"]) == ("over", None, [])
    (firing,) = api.get(f"{URL}{told['id']}/firings/").json()["results"]
    assert firing["prompt"] == Prompt.objects.get(conversation=chat).pk
    assert (firing["state"], firing["slot"], firing["times"]) == ("started", "2026-03-02T13:00:00+00:00", 1)


@pytest.mark.usefixtures("_shop")
def test_a_workflow_is_started_with_its_input(api: Api, clock: StillClock) -> None:
    told = made(api, **ORDER)
    assert (told["policy"], told["input"], told["text"]) == ("workflow:shop.order", {"item": "paper"}, None)
    assert made(api, policy="workflow:shop.order", input={"item": "pens"}, cron="@daily")["name"] == "Order something"
    clock.at(2026, 3, 3, 8)
    assert clock.passes() == 2
    assert set(Prompt.objects.values_list("policy", flat=True)) == {"workflow:shop.order"}


@pytest.mark.usefixtures("_shop")
def test_an_input_may_have_any_character(api: Api) -> None:
    assert made(api, **ORDER | {"input": {"item": "a\x00b"}})["input"] == {"item": "a\ufffdb"}


def test_a_policy_of_an_app_is_started_by_its_name(
    api: Api, other: Api, ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(site, monkeypatch)
    ann.user_permissions.add(Permission.objects.get(codename="start_policy"))
    plan = {"policy": "travel.plan", "input": ROME, "cron": "@weekly"}
    assert made(api, **plan)["name"] == "Plan a trip"
    wrong = error_of(api.post(URL, {**plan, "input": {"city": "Rome", "days": 99}}), 400)
    assert (wrong["code"], list(wrong["fields"])) == ("invalid_input", ["input.days"])
    assert error_of(api.post(URL, {**plan, "policy": "no.such"}), 404)["code"] == "unknown_policy"
    assert error_of(other.post(URL, plan), 403)["code"] == "forbidden"


@pytest.mark.parametrize(
    ("body", "code", "fields"),
    [
        ({"text": "a"}, "invalid", {"": ["Give one of at, every_seconds, cron and webhook."]}),
        ({"cron": "@daily"}, "invalid", {"": ["Give one of text, workflow and policy."]}),
        (LOGS | {"cron": "@daily"}, "invalid", {"": ["Give only one of at, every_seconds and cron."]}),
        (LOGS | {"policy": "travel.plan"}, "invalid", {"": ["Give only one of text, workflow and policy."]}),
        (LOGS | {"input": {}}, "invalid", None),
        (LOGS | {"conversation": 1}, "invalid", None),
        (LOGS | {"seconds": 300}, "invalid", {"seconds": ["There is no such field."]}),
        (LOGS | {"every_seconds": "300"}, "invalid", None),
        (LOGS | {"overlap": "both"}, "invalid", None),
        ({"text": "a", "at": "tomorrow"}, "invalid", None),
        ({"text": "a", "at": "9999-12-31T23:59-12:00"}, "invalid", None),
        ({"text": "a", "at": "0001-01-01T00:00+14:00"}, "invalid", None),
        ({"text": "a", "at": "0002-01-01T00:00+14:00"}, "invalid_input", {"at"}),
        ({"text": "a", "at": "2026-03-02T11:00Z"}, "invalid_input",
         {"at": ["That was Mon 2 Mar 2026, 12:00, which is over. Choose a time to come."]}),
        ({"text": "a", "at": "2026-03-03T11:00", "zone": "Europe/Nowhere"}, "invalid_input", {"zone"}),
        (LOGS | {"zone": "../etc/passwd"}, "invalid_input", {"zone"}),
        (LOGS | {"every_seconds": 60}, "invalid_input",
         {"every_seconds": ["That is more often than every 5 minutes, which is the limit here."]}),
        ({"text": " ", "cron": "0 9 * *"}, "invalid_input", {"text", "cron"}),
        ({"text": "a" * 4001, "cron": "@daily"}, "invalid_input", {"text"}),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_field(api: Api, body: Any, code: str, fields: Any) -> None:
    error = error_of(api.post(URL, body), 400)
    assert (error["code"], Trigger.objects.count()) == (code, 0)
    if fields is not None:
        assert (error["fields"] if isinstance(fields, dict) else set(error["fields"])) == fields


def test_a_time_to_come_in_any_year_can_be_given(api: Api) -> None:
    assert made(api, text="a", at="9998-12-31T23:59-12:00", zone="Pacific/Kiritimati")["state"] == "on"


def test_the_conversation_must_be_a_chat_of_theirs(api: Api, bob: User, ann: User) -> None:
    once = {"text": "look", "at": "2026-03-03T09:00"}
    assert error_of(api.post(URL, {**once, "conversation": start_conversation(bob).pk}), 404)
    run = Conversation.objects.create(owner=ann, kind="run")
    assert list(error_of(api.post(URL, {**once, "conversation": run.pk}), 400)["fields"]) == ["conversation"]


def test_the_same_request_makes_one(api: Api, clock: StillClock) -> None:
    key = "k" * 200
    first = api.post(URL, LOGS, Idempotency_Key=key)
    clock.time += timedelta(seconds=9)
    again = api.post(URL, LOGS, Idempotency_Key=key)
    assert (again.status_code, again.json()["id"], Trigger.objects.count()) == (201, first.json()["id"], 1)
    conflict = error_of(api.post(URL, LOGS | {"name": "Logs"}, Idempotency_Key=key), 409)
    assert (conflict["code"], conflict["trigger"]) == ("idempotency_conflict", first.json()["id"])


def test_a_person_may_have_so_many(api: Api, settings: Any) -> None:
    settings.AGENTSITE_TRIGGERS_A_PERSON = 1
    made(api, **LOGS)
    error = error_of(api.post(URL, LOGS), 409)
    assert error["code"] == "too_many_triggers"
    assert error["message"].startswith("You have 1 trigger, which")


def test_a_change_leaves_what_it_does_not_name(api: Api, clock: StillClock) -> None:
    told = made(api, **LOGS, name="Logs", overlap="queue")
    clock.time += timedelta(minutes=1)
    changed = patch(api, told["id"], {"text": "look again"}).json()
    assert (changed["text"], changed["next_at"]) == ("look again", told["next_at"])
    assert [changed[name] for name in ("name", "every_seconds", "overlap")] == ["Logs", 300, "queue"]
    daily = patch(api, told["id"], {"cron": "0 9 * * *"}).json()
    assert (daily["when"], daily["every_seconds"], daily["text"]) == (
        "every day at 09:00 Europe/Berlin",
        None,
        "look again",
    )
    moved = patch(api, told["id"], {"zone": "Asia/Tokyo"}).json()
    assert (moved["when"], moved["next_at"]) == ("every day at 09:00 Asia/Tokyo", "2026-03-03T00:00:00+00:00")
    error = error_of(patch(api, told["id"], {"cron": "* * * * *", "name": "x"}), 400)
    assert (list(error["fields"]), api.get(f"{URL}{told['id']}/").json()) == (["cron"], moved)
    assert list(error_of(patch(api, told["id"], {"input": {"a": 1}}), 400)["fields"]) == ["input"]


@pytest.mark.usefixtures("_shop")
def test_a_change_may_put_a_workflow_in_place_of_a_text(api: Api) -> None:
    told = made(api, **LOGS)
    wrong = error_of(patch(api, told["id"], {"workflow": "shop.order"}), 400)
    assert list(wrong["fields"]) == ["input.item"]
    changed = patch(api, told["id"], {"workflow": "shop.order", "input": {"item": "paper"}}).json()
    assert (changed["policy"], changed["text"], changed["every_seconds"]) == ("workflow:shop.order", None, 300)
    assert patch(api, told["id"], {"input": {"item": "pens"}}).json()["input"] == {"item": "pens"}
    assert patch(api, told["id"], {"text": "look"}).json()["input"] is None


def test_a_paused_one_says_nothing_is_next_until_it_is_resumed(api: Api, clock: StillClock) -> None:
    pk = made(api, **LOGS)["id"]
    paused = api.post(f"{URL}{pk}/pause/").json()
    assert (paused["state"], paused["next_at"], paused["next"]) == ("paused", None, [])
    assert api.post(f"{URL}{pk}/pause/").json() == paused
    assert clock.passes(hours=1) == 0
    resumed = api.post(f"{URL}{pk}/resume/").json()
    assert (resumed["state"], resumed["next_at"]) == ("on", "2026-03-02T13:05:00+00:00")


def test_it_is_run_by_hand_and_says_what_came_of_it(api: Api, ann: User, site: Site, clock: StillClock) -> None:
    pk = made(api, **LOGS)["id"]
    site.speaks(*ONE_GATE)
    response = api.post(f"{URL}{pk}/run/")
    first = response.json()
    assert (response.status_code, first["state"], first["slot"]) == (201, "started", None)
    assert api.get(f"/api/prompts/{first['prompt']}/").json()["origin"] == "trigger"
    second = api.post(f"{URL}{pk}/run/").json()
    assert (second["state"], second["prompt"], bool(second["reason"])) == ("skipped", None, True)
    site.works()
    assert Prompt.objects.get().state == State.WAITING
    clock.passes(hours=1)
    page = api.get(f"{URL}{pk}/firings/?page_size=2").json()
    assert (page["count"], [each["state"] for each in page["results"]]) == (4, ["folded", "missed"])
    assert (page["results"][1]["times"], page["results"][0]["prompt"]) == (11, first["prompt"])
    assert [each["state"] for each in api.get(page["next"]).json()["results"]] == ["skipped", "started"]


def test_lists_are_by_state(api: Api, ann: User, clock: StillClock) -> None:
    ids = {state: made(api, **LOGS)["id"] for state in ("on", "paused", "off")}
    ids["over"] = made(api, text="a", at="2026-03-02T13:30")["id"]
    clock.passes(hours=1)
    managing.pause(Trigger.objects.get(pk=ids["paused"]))
    Trigger.objects.filter(pk=ids["off"]).update(off_reason="It failed 5 times in a row.", paused_at=clock.time)
    for state, pk in ids.items():
        (found,) = api.get(f"{URL}?state={state}").json()["results"]
        assert (found["id"], found["state"]) == (pk, state)
    every = api.get(URL).json()["results"]
    assert [each["id"] for each in every] == sorted(ids.values(), reverse=True)
    assert api.get(f"{URL}?state=all").json()["count"] == 4
    assert list(error_of(api.get(f"{URL}?state=gone"), 400)["fields"]) == ["state"]


def test_it_is_deleted_with_its_history_and_its_turns_stay(api: Api) -> None:
    pk = made(api, **LOGS)["id"]
    api.post(f"{URL}{pk}/run/")
    assert api.delete(f"{URL}{pk}/").status_code == 204
    assert (Trigger.objects.exists(), Firing.objects.exists(), Prompt.objects.count()) == (False, False, 1)
    assert error_of(api.delete(f"{URL}{pk}/"), 404)


def test_nobody_reaches_those_of_others(api: Api, other: Api) -> None:
    pk = made(api, **LOGS)["id"]
    assert other.get(URL).json()["count"] == 0
    for path in ("", "firings/"):
        assert error_of(other.get(f"{URL}{pk}/{path}"), 404)
    for path in ("pause/", "resume/", "run/"):
        assert error_of(other.post(f"{URL}{pk}/{path}"), 404)
    assert error_of(other.delete(f"{URL}{pk}/"), 404)
    assert error_of(patch(other, pk, {"name": "mine"}), 404)
    assert (Trigger.objects.get().name, Firing.objects.exists()) == (LOGS["text"], False)


@pytest.mark.usefixtures("_shop")
def test_a_key_needs_the_scope_of_what_it_starts(api: Api, limited: Callable[..., Api]) -> None:
    said, ordered = made(api, **LOGS)["id"], made(api, **ORDER)["id"]
    reads, chats, orders = limited("read"), limited("chat"), limited("workflows")
    assert reads.get(f"{URL}{said}/").status_code == 200
    for pk in (said, ordered):
        assert error_of(reads.post(f"{URL}{pk}/pause/"), 403)
    assert error_of(chats.post(URL, ORDER), 403)
    assert error_of(orders.post(URL, LOGS), 403)
    assert orders.post(URL, ORDER).status_code == 201
    for path in ("resume/", "run/"):
        assert error_of(chats.post(f"{URL}{ordered}/{path}"), 403)
        assert error_of(orders.post(f"{URL}{said}/{path}"), 403)
    assert error_of(patch(chats, ordered, {"name": "x"}), 403)
    assert error_of(patch(chats, said, {"workflow": "shop.order", "input": {"item": "paper"}}), 403)
    assert error_of(orders.post(f"{URL}{said}/pause/"), 403)
    assert [chats.post(f"{URL}{pk}/pause/").status_code for pk in (said, ordered)] == [200, 200]
    assert chats.delete(f"{URL}{ordered}/").status_code == 204


def test_runs_are_limited_like_other_starts(api: Api, settings: Any) -> None:
    settings.AGENTSITE_API_STARTS = 1
    pk = made(api, **LOGS)["id"]
    assert api.post(f"{URL}{pk}/run/").status_code == 201
    assert error_of(api.post(f"{URL}{pk}/run/"), 429)["code"] == "throttled"
    assert Firing.objects.count() == 1
