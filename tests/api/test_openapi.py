"""The OpenAPI document: valid, complete and correct; and its page loads nothing from other origins."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from io import StringIO
from typing import Any

import jsonschema
import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import URLPattern, get_resolver

from agents.discovery import installed
from agents.engine.decisions import PEOPLE_MAY, STATES
from agents.engine.ledger import Step, action_error
from agents.models import SystemPrompt
from conversations.api import urls as of_conversations
from conversations.api.views import ApiView
from conversations.context import urls as of_clients
from conversations.models import Firing, FiringState, Payload, PendingFile, Prompt, State
from conversations.prompts.start import cancel_prompt
from conversations.push.event_reader import EventReader
from conversations.push.growth import Delta
from tests.api.client import JSON, Api, said, with_key
from tests.api.world import World
from tests.conversations.questions import TRIP, Trip, asked
from tests.conversations.recorded import MIXED, ONE_GATE, Site, pending
from tests.conversations.support import Story, asking, interrupted
from tests.workflows import shop
from workflows.api import urls as of_workflows
from workflows.models import Batch


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The document that `manage.py spectacular --validate --fail-on-warn` prints."""
    printed = StringIO()
    call_command("spectacular", validate=True, fail_on_warn=True, format="openapi-json", stdout=printed)
    found: dict[str, Any] = json.loads(printed.getvalue())
    return found


OTHERS = ("api-schema", "api-docs", "api-unknown")
"""Addresses that the document does not describe."""


class Checked(Api):
    """A client that validates each answer against the document."""

    def __init__(self, api: Api, schema: dict[str, Any]) -> None:
        super().__init__(api.key)
        self.schema = schema
        self.seen: set[tuple[str, str, int]] = set()

    def get(self, path: str, **headers: str) -> Any:
        return self._held("get", path, super().get(path, **headers))

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self._held("post", path, super().post(path, body, **headers))

    def send(self, path: str, fields: dict[str, Any], **headers: str) -> Any:
        return self._held("post", path, super().send(path, fields, **headers))

    def change(self, method: str, path: str, body: dict[str, Any]) -> Any:
        """Send PATCH or DELETE."""
        send = getattr(self.client, method)
        return self._held(method, path, send(path, body, content_type=JSON, headers=self._with_key({})))

    def _held(self, method: str, path: str, response: Any) -> Any:
        token = re.sub(r"(uploads)/[^/]+", r"\1/{token}", path.partition("?")[0])
        for part in ("secret", "firing"):
            token = re.sub(rf"({part}s)/\d+", rf"\1/{{{part}}}", token)
        described = re.sub(r"(?<=/)\d+(?=/)", "{id}", token).replace("shop.order", "{name}")
        answers = self.schema["paths"][described][method]["responses"]
        contents = answers[str(response.status_code)].get("content", {}).values()
        assert bool(contents) == bool(response.content)
        for content in contents:
            check(self.schema, content["schema"], response.json())
            even(response.json())
        self.seen.add((method, described, response.status_code))
        return response


def check(schema: dict[str, Any], shape: dict[str, Any], value: Any) -> None:
    jsonschema.validate(value, {**shape, "components": schema["components"]}, jsonschema.Draft202012Validator)


GIVEN = ("input", "payload", "data", "proposed", "schema", "output", "parameters")
"""Fields whose values are given by models, tools and people, and may hold anything."""


def even(value: Any, name: str = "") -> None:
    """What is absent is null, and few texts may be empty; and times are date-times with a time zone, or null."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in GIVEN or (isinstance(inner, dict) and "position" in inner):
                even(inner, key)
    elif isinstance(value, list):
        for inner in value:
            even(inner, name)
    elif name.endswith("_at") or name in ("time", "until"):
        assert value is None or datetime.fromisoformat(value).tzinfo, (name, value)
    else:
        assert value != "" or name in ("path", "raw", "before", "after"), f"{name} is empty"


def strict(schema: dict[str, Any], outputs: list[dict[str, Any]]) -> None:
    """Each output has the schema of its kind, and no undocumented fields."""
    for output in outputs:
        component = schema["components"]["schemas"][f"{output['type'].title()}Output"]
        check(schema, {**component, "unevaluatedProperties": False}, output)
        assert set(output) == set(component["required"])


def test_every_address_is_described(schema: dict[str, Any]) -> None:
    addresses = {
        *(f"/api/{each.pattern}" for each in of_conversations.urlpatterns if each.name not in OTHERS),
        *(f"/{each.pattern}" for each in of_workflows.urlpatterns if each.name != "workflow-categories"),
        *(f"/{each.pattern}" for each in of_clients.urlpatterns),
    }
    ours = {re.sub(r"<\w+:(\w+)>", r"{\1}", address.replace("<int:pk>", "{id}")) for address in addresses}
    assert ours == set(schema["paths"])
    assert set(schema["components"]["securitySchemes"]) == {"key", "cookieAuth"}


@pytest.mark.parametrize("component", ["PromptHead", "Prompt", "Moment"])
def test_every_state_of_a_prompt_is_described(schema: dict[str, Any], component: str) -> None:
    assert schema["components"]["schemas"][component]["properties"]["state"]["enum"] == State.values


def test_every_reference_leads_somewhere(schema: dict[str, Any]) -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for name, inner in value.items():
                yield from [inner] if name == "$ref" else references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    found = set(references(schema))
    assert {ref.rpartition("/")[2] for ref in found} <= set(schema["components"]["schemas"])
    assert len(found) > 20


@pytest.mark.django_db
def test_the_page_of_the_document_can_only_be_read(ann: User) -> None:
    client = Client()
    client.force_login(ann)
    answers = {method: client.generic(method, "/api/docs/").status_code for method in ("GET", "HEAD", "OPTIONS", "PUT")}
    assert answers == {"GET": 200, "HEAD": 200, "OPTIONS": 405, "PUT": 405}


def test_no_tool_is_named(schema: dict[str, Any]) -> None:
    """R8: only staff see the catalogue of tools."""
    text = json.dumps(schema)
    names = [tool.name for tool in installed().tools]
    assert names
    assert [name for name in names if name in text] == []


@pytest.mark.django_db
def test_every_answer_is_as_described(
    schema: dict[str, Any], api: Api, ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each endpoint, with good and bad requests: answers have the documented shape, with all kinds of outputs."""
    checked = Checked(api, schema)
    talk = checked.post("/api/conversations/", {"title": "T"}).json()["id"]
    checked.post("/api/conversations/", {"nonsense": 1})
    checked.get("/api/conversations/")
    checked.get(f"/api/conversations/{talk}/")
    checked.get("/api/conversations/99/")
    pirate = SystemPrompt.create(name="Pirate", text="Arr.")
    checked.get(f"/v1/system-prompts/{pirate.pk}/enhanced")
    assert checked.get("/api/system-prompts/").json()["count"] == 1
    checked.change("patch", f"/api/conversations/{talk}/", {"system_prompt": "Pirate"})
    new = checked.post(f"/api/conversations/{talk}/prompts/", {"input": "Hi."}).json()["id"]
    checked.post(f"/api/conversations/{talk}/prompts/", {"input": "Hi."})
    checked.get(f"/api/conversations/{talk}/prompts/")
    checked.post(f"/api/prompts/{new}/cancel/", {})
    checked.post(f"/api/prompts/{new}/continue/", {})
    checked.post(f"/api/prompts/{new}/again/")
    checked.change("patch", f"/api/conversations/{talk}/", {"title": "New", "archived": True})
    checked.change("patch", f"/api/conversations/{talk}/", {"title": ""})
    checked.change("delete", f"/api/conversations/{talk}/", {"reason": "Done."})
    checked.change("delete", f"/api/conversations/{talk}/", {})

    stopped = site.runs(ann, *ONE_GATE)
    cancel_prompt(stopped.pk, ann)
    checked.post(f"/api/prompts/{stopped.pk}/continue/")
    ended = site.ended(ann, *MIXED)
    strict(schema, checked.get(f"/api/prompts/{ended.pk}/").json()["outputs"])
    checked.get(f"/api/prompts/{ended.pk}/steps/?page_size=3&after=4")
    strict(schema, checked.get(f"/api/prompts/{ended.pk}/outputs/?at=9").json()["outputs"])

    (waits,) = pending(site.runs(ann, *ONE_GATE))
    remembered = {"digest": waits.digest, "remember": {"scope": "exact"}}
    given = checked.post(f"/api/approvals/{waits.pk}/approve/", remembered).json()["grant"]["id"]
    assert checked.get("/api/grants/").json()["count"] == 1
    checked.get("/api/grants/?state=gone")
    checked.post(f"/api/grants/{given}/revoke/")
    checked.post("/api/grants/99/revoke/")

    trigger = checked.post("/api/triggers/", {"text": "look", "cron": "@daily"}, Idempotency_Key="t").json()["id"]
    checked.post("/api/triggers/", {"text": "look", "cron": "@hourly"}, Idempotency_Key="t")
    checked.post("/api/triggers/", {"text": "look", "cron": "* * * * *"})
    checked.post("/api/triggers/", {"policy": "no.such", "cron": "@daily"})
    assert checked.get("/api/triggers/?state=on").json()["count"] == 1
    checked.get("/api/triggers/?state=gone")
    for word in ("run", "run", "pause", "resume"):
        checked.post(f"/api/triggers/{trigger}/{word}/")
    assert checked.get(f"/api/triggers/{trigger}/firings/").json()["count"] == 2
    checked.get(f"/api/triggers/{trigger}/")
    checked.change("patch", f"/api/triggers/{trigger}/", {"at": "2400-01-01T00:00"})
    checked.change("patch", f"/api/triggers/{trigger}/", {"at": "2020-01-01T00:00"})
    checked.change("delete", f"/api/triggers/{trigger}/", {})
    checked.change("delete", f"/api/triggers/{trigger}/", {})
    hook = checked.post("/api/triggers/", {"text": "read it", "webhook": "token"}).json()["id"]
    secret = checked.post(f"/api/triggers/{hook}/secrets/").json()["id"]
    for _ in range(2):
        checked.change("delete", f"/api/triggers/{hook}/secrets/{secret}/", {})
    checked.change("delete", f"/api/triggers/{hook}/secrets/{secret - 1}/", {})
    failed = Firing.objects.create(trigger_id=hook, state=FiringState.FAILED, reason="No.")
    Payload.objects.create(firing=failed, media_type="application/json", content=b"{}", size=2)
    for _ in range(2):
        checked.post(f"/api/triggers/{hook}/firings/{failed.pk}/again/")
    checked.get(f"/api/triggers/{hook}/")

    story, gate = asking(ann)
    call = story.call("fx.more")
    story.emits(call, "widget", widget="receipt", data={"a": 1}, fallback="Paid.")
    story.emits(call, "reasoning", text="Hm.")
    story.emits(call, "file", file=0, name="x", summary="Lost.")
    outputs = checked.get(f"/api/prompts/{story.prompt.pk}/").json()["outputs"]
    strict(schema, outputs)
    assert {output["type"] for output in outputs} == {"tool", "widget", "reasoning", "file"}
    checked.get("/api/approvals/")
    checked.get(f"/api/approvals/{gate.pk}/")
    checked.post(f"/api/approvals/{gate.pk}/approve/", {"digest": "0" * 64})
    checked.post(f"/api/approvals/{gate.pk}/approve/", {"digest": gate.digest})
    checked.post(f"/api/approvals/{gate.pk}/reject/", {"digest": gate.digest})
    second, card = asking(ann)[1], interrupted(ann)[1]
    checked.post(f"/api/approvals/{second.pk}/reject/", {"digest": second.digest, "reason": "No."})
    sent = [{"id": card.pk, "digest": card.digest, "decision": word} for word in ("it_ran", "run_again")]
    checked.post("/api/approvals/decide/", sent)
    _, question = asked(site, ann, Trip)
    for answer in ({}, TRIP):
        checked.post(f"/api/approvals/{question.pk}/answer/", {"digest": question.digest, "answer": answer})
    checked.post(f"/api/approvals/{question.pk}/answer/", {"digest": question.digest, "answer": "Late."})
    checked.get("/api/approvals/?state=all")
    checked.get("/api/usage/")
    checked.post("/api/uploads/", {})
    checked.send("/api/uploads/", {"file": SimpleUploadedFile("a.csv", b"1")})
    checked.get("/api/uploads/")
    checked.change("delete", f"/api/uploads/{PendingFile.objects.get().token}/", {})
    checked.change("delete", "/api/uploads/none/", {})
    with shop.registered(monkeypatch, shop.order):
        checked.get("/api/workflows/")
        checked.get("/api/workflows/categories/")
        checked.get("/api/workflows/shop.order/")
        checked.post("/api/workflows/shop.order/run/", {"parameters": {"item": ""}})
        checked.post("/api/workflows/shop.order/run/", {"parameters": {"item": "paper"}}, Idempotency_Key="k")
        cancel_prompt(Prompt.objects.get(policy="workflow:shop.order").pk, ann)
        checked.post("/api/workflows/shop.order/run/?wait=1", {"parameters": {"item": "paper"}}, Idempotency_Key="k")
        checked.get("/api/workflows/shop.order/runs/")
        checked.get("/api/workflows/runs/?started_by=api&search=paper")
        checked.get("/api/workflows/runs/?state=nonsense")
        lines = [{"item": "paper"}, {"item": "pens"}]
        checked.post("/api/workflows/shop.order/batch/", {"lines": [{"item": ""}]})
        checked.post("/api/workflows/shop.order/batch/", {"lines": lines}, Idempotency_Key="b")
        checked.post("/api/workflows/shop.order/batch/", {"csv": "item\npens"}, Idempotency_Key="b")
        batch = Batch.objects.get()
        checked.get("/api/workflows/batches/")
        checked.get(f"/api/workflows/batches/{batch.pk}/")
        checked.change("delete", f"/api/workflows/batches/{batch.pk}/", {})
        checked.post(f"/api/workflows/batches/{batch.pk}/stop/", {"running": True})
        checked.change("delete", f"/api/workflows/batches/{batch.pk}/", {})

    successes = {(method, path) for method, path, status in checked.seen if status < 300}
    described = {(method, path) for path, methods in schema["paths"].items() for method in methods}
    left = {
        path for _, path in described - successes if not path.startswith("/context/")
    }  # those have a site of their own
    assert left == {"/api/files/{id}/", "/api/conversations/{id}/events/", "/api/prompts/{id}/events/"}


@pytest.mark.django_db
def test_a_text_that_is_there_may_be_empty(schema: dict[str, Any], ann: User) -> None:
    """An answer with nothing in it that could not be read, and a file with nothing in it."""
    story = Story(ann)
    story.asks_model()
    unread = action_error("model", "parse_failure", "There is no JSON in it.", path="1")
    story.append(Step(unread.actor, unread.type, {**unread.payload, "raw": ""}, path="1"))
    story.asks_model()
    call = story.call("files.write", path="a.txt", content="")
    story.answers(call)
    story.gate(call, change={"path": "a.txt", "before": "", "after": ""})
    retry, tool = Checked(with_key(ann), schema).get(f"/api/prompts/{story.prompt.pk}/").json()["outputs"]
    strict(schema, [retry, tool])
    assert retry["raw"] == ""
    assert (tool["approval"]["change"]["before"], tool["approval"]["change"]["after"]) == ("", "")


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["owner", "decider", "staff"])
def test_all_that_a_world_holds_is_as_described(
    schema: dict[str, Any], role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page of data on a site that has one of everything, as those see it who may."""
    with shop.registered(monkeypatch, shop.order):
        world = World()
        world.waiting.emits(world.waiting.call("fx.more"), "file", file=world.file.pk, name="a.txt")
        checked = Checked(with_key(world.people[role]), schema)
        for path, methods in schema["paths"].items():
            if "get" not in methods or path.endswith(("/events/", "/files/{id}/")):
                continue
            route = path[1:].replace("{id}", "<int:pk>").replace("{name}", "<str:name>")
            checked.get(world.address(route))
        for state in checked.get("/api/approvals/?state=all").json()["results"]:
            checked.get(f"/api/approvals/{state['id']}/")
        if role == "owner":
            for conversation in checked.get("/api/conversations/").json()["results"]:
                for prompt in checked.get(f"/api/conversations/{conversation['id']}/prompts/").json()["results"]:
                    for part in ("", "steps/", "outputs/"):
                        checked.get(f"/api/prompts/{prompt['id']}/{part}")
            refused = checked.post(f"/api/conversations/{world.idle.pk}/prompts/")
        else:
            refused = checked.post(f"/api/conversations/{world.idle.pk}/prompts/")
    assert refused.status_code == (400 if role == "owner" else 201)


@pytest.mark.django_db
def test_every_event_is_as_described(schema: dict[str, Any], ann: User, site: Site) -> None:
    """Of turns that waited, slept, failed, were stopped or went well, and all kinds of outputs; and streaming text."""
    prompt = site.runs(ann, *MIXED)
    while pending(prompt):
        site.approves(prompt, ann)
        site.works()
    story, _ = asking(ann)
    call = story.call("fx.more")
    story.emits(call, "widget", widget="receipt")
    story.emits(call, "file", file=0, name="x")
    story.append(Step("runtime", "pause", {"pending_action_count": 0, "until": "2026-01-01T00:00:00+00:00"}))
    story.ends("failed", "max_rounds", "Stopped after 10 rounds.")
    stopped, _ = asking(ann)
    cancel_prompt(stopped.prompt.pk, ann)
    described = {kind: name for name, kind in kinds_of(schema)}
    texts = [Delta(1, "1", (1, 1), 0, "Hi.", 1).event()]
    for conversation in (prompt.conversation_id, story.conversation.pk, stopped.conversation.pk):
        texts += [event.text for event in EventReader(conversation, 0).read()]
    seen = set()
    for event in map(json.loads, texts):
        check(schema, {"$ref": "#/components/schemas/Event"}, event)
        check(schema, schema["components"]["schemas"][described[event["type"]]], event)
        even(event)
        seen.add(event["type"])
    assert seen == set(described)


def kinds_of(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the component of each event, and a type that it describes."""
    mapping = schema["components"]["schemas"]["Event"]["discriminator"]["mapping"]
    for kind, ref in mapping.items():
        yield ref.rpartition("/")[2], kind


def test_nothing_is_published_that_does_not_work(schema: dict[str, Any]) -> None:
    """Rules decide once there are rules."""
    components = schema["components"]["schemas"]
    assert set(components["Approve"]["properties"]) == {"digest", "input", "note", "remember"}
    assert "by_rule" not in components["Gate"]["properties"]


# Where it is served


@pytest.mark.django_db
def test_the_description_is_for_who_may_use_it(api: Api, client: Client, ann: User) -> None:
    assert said(client.get("/api/schema/"), 401) == "not_authenticated"
    response = api.get("/api/schema/")
    assert response.status_code == 200
    assert json.loads(response.content)["openapi"].startswith("3.1")
    assert client.get("/api/docs/")["Location"] == "/login/?next=/api/docs/"
    client.force_login(ann)
    assert client.get("/api/schema/").status_code == 200


@pytest.mark.django_db
def test_the_docs_page_takes_nothing_from_elsewhere(client: Client, ann: User) -> None:
    """Its scripts and styles are served by this site, and its own policy allows no others."""
    client.force_login(ann)
    page = client.get("/api/docs/")
    assert "'unsafe-eval'" not in page["Content-Security-Policy"]
    assert re.search(r"script-src 'self';", page["Content-Security-Policy"])
    sources = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(sources) >= 4
    assert [source for source in sources if not source.startswith("/")] == []
    assert not re.search(r"<script[^>]*>[^<]", page.text)
    script = client.get("/api/docs/?script=")
    assert script["Content-Type"].startswith("application/javascript")
    assert "/api/schema/" in script.text


def test_no_view_of_the_api_is_left_without_our_rules() -> None:
    """Each one is one of our views, with our limits and errors."""
    all_patterns = [*of_workflows.urlpatterns, *of_conversations.urlpatterns]
    patterns = [pattern for pattern in all_patterns if isinstance(pattern, URLPattern)]
    others = {p.name for p in patterns if not issubclass(getattr(p.callback, "cls", object), ApiView)}
    assert others == {"api-docs"}
    assert get_resolver().resolve("/api/anything/at/all").url_name == "api-unknown"


def test_the_description_lists_every_decision_and_every_state(schema: dict[str, Any]) -> None:
    components = schema["components"]["schemas"]
    assert components["Decision"]["properties"]["decision"]["enum"] == [decision.value for decision in PEOPLE_MAY]
    assert components["Gate"]["properties"]["state"]["enum"] == ["pending", *STATES]
