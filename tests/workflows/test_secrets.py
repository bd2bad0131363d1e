"""Secrets of runs: given once, used by tools, and on record nowhere."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from pydantic import BaseModel, SecretStr
from pytest_django.fixtures import Settings

from agents.engine.secrets import RunSecrets, _encodings
from agentsite.logs import JsonFormatter
from conversations.approvals.decisions import DecisionRefused, decide
from conversations.display.cards import cards
from conversations.display.decision_form import edit_form
from conversations.erasure.conversations import erase
from conversations.erasure.steps import redact
from conversations.models import Conversation, Draft, Output, Prompt, RunSecret, Step
from conversations.prompts.idempotency import KeyReused
from conversations.prompts.listing import rename
from conversations.prompts.start import BadInput, cancel_prompt, repeat_prompt, start_conversation, start_prompt
from conversations.prompts.startable import InvalidInput
from conversations.verification.stored import verify
from conversations.worker.drafts import Drafts
from tests.conversations.recorded import Site, in_this_thread, meddle, pending, taken
from tests.conversations.support import person
from tests.conversations.worker.test_drafts import write
from tests.workflows import vault
from tests.workflows.shop import installed
from workflows import Flow, workflow
from workflows.definition import Workflow
from workflows.running import start_run

pytestmark = pytest.mark.django_db

BOTH = pytest.mark.parametrize("secret", [vault.LONG, vault.SHORT])
REFERENCE = {"$secret": "password"}


@pytest.fixture
def ann(db: None) -> User:
    return person("ann")


@pytest.fixture(autouse=True)
def _installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(site.world, "tools", lambda: list(vault.TOOLS))
    vault.USED.clear()
    with installed(site, monkeypatch, workflows=vault.ALL):
        yield


def started(by: User, workflow: Workflow = vault.visit, **input: Any) -> Prompt:
    return start_run(workflow, by, {"host": "office", "password": vault.LONG, **input}, key="once")


def to_the_end(site: Site, prompt: Prompt, by: User, answer: str = "Yes.") -> Prompt:
    """Approve what asks, and answer what is asked."""
    site.works()
    while gates := pending(prompt):
        for gate in gates:
            if gate.ask == "question":
                decide(gate.pk, by, "answer", digest=gate.digest, via="page", answer=answer)
            else:
                decide(gate.pk, by, "approve", digest=gate.digest, via="page", reason=answer)
        site.works()
    prompt.refresh_from_db()
    return prompt


def kept() -> dict[str, str]:
    """All that the tables hold, as text, by the name of the table."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            found[table] = "\n".join(repr(row) + "\n" + "\n".join(map(str, row)) for row in cursor.fetchall())
    return found


def telling(texts: dict[str, str], secret: str) -> list[str]:
    """Where the secret stands, in whatever form."""
    return [name for name, text in texts.items() if any(form in text for form in _encodings(secret))]


@BOTH
@pytest.mark.parametrize("host", ["office", "closed", "broken"])
def test_a_secret_is_on_record_nowhere(
    ann: User, site: Site, host: str, secret: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.setFormatter(JsonFormatter())  # what the site writes, where it is written
    prompt = started(ann, host=host, password=secret)
    assert RunSecret.objects.get().field == "password"
    assert telling(kept(), secret) == []
    site.works()
    assert telling(kept(), secret) == []
    to_the_end(site, prompt, ann, f"Yes, {secret}")
    assert prompt.state == "completed"
    assert [(host, secret), (host, secret)] == vault.USED
    assert telling(kept(), secret) == []
    logged = [str(json.loads(line)["message"]) for line in caplog.text.splitlines()]
    assert telling({"log": "\n".join(logged)}, secret) == []
    assert "logging in with [secret]" in caplog.text
    result = Output.objects.get(prompt=prompt, type="result").entry().model_dump()["output"]
    assert (result["seen"], result["answer"], result["marker"]) == (len(secret), "Yes, [secret]", "$secret:password")
    assert "[secret]" in str(result["said"])
    assert not RunSecret.objects.exists()
    assert verify(prompt.conversation_id).problems == []


def test_the_ledger_has_references(ann: User, site: Site) -> None:
    prompt = to_the_end(site, started(ann), ann)
    calls = [step.content["payload"] for step in Step.objects.filter(prompt=prompt, type="action_call").order_by("seq")]
    reference = {"$secret": "password"}
    assert calls[0]["input"] == {"host": "office", "password": reference}
    assert [call["password"] for call in calls if "password" in call] == [reference, reference]
    assert next(call["input"] for call in calls if call.get("ask") == "approve")["password"] == reference
    assert prompt.input == "/vault.visit host=office"


@pytest.mark.parametrize("workflow", [vault.outer, vault.bare])
def test_a_secret_is_passed_on(ann: User, site: Site, workflow: Workflow) -> None:
    prompt = to_the_end(site, started(ann, workflow), ann)
    assert (prompt.state, vault.USED) == ("completed", [("office", vault.LONG)])


def test_an_error_that_ends_the_run_tells_none(ann: User, site: Site, caplog: pytest.LogCaptureFixture) -> None:
    prompt = to_the_end(site, started(ann, vault.fail, password=vault.SHORT), ann)
    assert prompt.state == "failed"
    assert telling(kept(), vault.SHORT) == []
    assert not RunSecret.objects.exists()


# Where it is given, and where it is looked at


def everywhere(client: Client, prompt: Prompt) -> dict[str, str]:
    """All pages, answers of the API and exports of a run, by address."""
    at, run = f"/c/{prompt.conversation_id}/", f"/api/prompts/{prompt.pk}/"
    found = {}
    for address in (
        "/", at, f"{at}export/", f"/prompts/{prompt.pk}/", "/workflows/", "/workflows/vault.visit/",
        "/workflows/vault.visit/runs/", reverse("workflow-again", args=["vault.visit", prompt.pk]),
        run, f"{run}steps/", f"{run}outputs/",
        "/api/approvals/", "/api/conversations/", "/api/workflows/vault.visit/runs/",
        "/admin/conversations/step/", "/admin/conversations/prompt/", "/admin/conversations/approval/",
        f"/admin/conversations/prompt/{prompt.pk}/change/",
        *(f"/admin/conversations/step/{pk}/change/" for pk in prompt_steps(prompt)),
    ):  # fmt: skip
        response = client.get(address)
        content = b"".join(response) if response.streaming else response.content
        found[address] = f"{response.status_code} {content.decode()}"
    out = io.StringIO()
    call_command("export_ledger", str(prompt.conversation_id), stdout=out)
    return found | {"ledger": out.getvalue()}


def prompt_steps(prompt: Prompt) -> list[int]:
    return list(Step.objects.filter(prompt=prompt).values_list("pk", flat=True))


@BOTH
@pytest.mark.parametrize("way", ["page", "api"])
@pytest.mark.django_db(transaction=True)
def test_no_page_and_no_answer_tells_it(site: Site, secret: str, way: str, ann: User) -> None:
    ann.is_staff = ann.is_superuser = True
    ann.save()
    client = Client()
    client.force_login(ann)
    given = {"host": "office", "password": secret, "note": "for tea"}
    if way == "page":
        form = client.get("/workflows/vault.visit/").content.decode()
        assert 'type="password"' in form
        bad = client.post("/workflows/vault.visit/", {"secret-1": secret, "key": "k"})  # the host is missing
        assert bad.status_code == 400
        assert telling({"form": bad.content.decode()}, secret) == []
        client.post(
            "/workflows/vault.visit/", {"line-0": "office", "secret-1": secret, "line-3": "for tea", "key": "k"}
        )
    else:
        body = json.dumps({"parameters": given})
        started = client.post(
            "/api/workflows/vault.visit/run/", body, "application/json", headers={"Idempotency-Key": "k"}
        )
        assert started.status_code == 202
        assert telling({"answer": started.content.decode()}, secret) == []
    prompt = Prompt.objects.get()
    site.works()
    waiting = everywhere(client, prompt)
    assert telling(waiting, secret) == []
    assert "secret: password, not shown" in waiting[f"/c/{prompt.conversation_id}/"]
    assert "secret: password, not shown" in waiting["ledger"] + waiting[f"/prompts/{prompt.pk}/"]
    to_the_end(site, prompt, ann, f"It is {secret}.")
    ended = everywhere(client, prompt)
    assert telling(ended, secret) == []
    assert {address: text[:3] for address, text in ended.items() if address != "ledger"} == {
        address: "200" for address in ended if address != "ledger"
    }
    again = ended[reverse("workflow-again", args=["vault.visit", prompt.pk])]
    assert re.search('value="office"', again)
    assert 'type="password"' in again


def test_a_form_that_asks_once_more_does_not_show_it(site: Site, ann: User) -> None:
    client = Client()
    client.force_login(ann)
    typed = {"line-0": "office", "secret-1": vault.SHORT, "key": "k"}
    asked = client.post("/workflows/vault.confirmed/", typed)
    page = asked.content.decode()
    assert telling({"page": page}, vault.SHORT) == []
    assert "secret: password, not shown" in page
    assert 'type="password" id="c-secret-1" name="secret-1"' in page
    client.post("/workflows/vault.confirmed/", typed | {"confirmed": "1"})
    assert Prompt.objects.get().input == "/vault.confirmed host=office"


def test_bad_input_keeps_nothing(ann: User) -> None:
    with pytest.raises(InvalidInput) as short:
        started(ann, password="tiny")
    assert set(short.value.fields) == {"password"}
    with pytest.raises(InvalidInput) as told:
        started(ann, note=f"My password is {vault.LONG}.")
    assert set(told.value.fields) == {"note"}
    assert vault.LONG not in str(told.value)
    with pytest.raises(InvalidInput):
        started(ann, password=REFERENCE)
    assert not Conversation.objects.exists()
    assert not RunSecret.objects.exists()


def test_the_same_request_is_known_again_without_its_secret(ann: User, settings: Settings) -> None:
    prompt = started(ann)
    assert started(ann).pk == prompt.pk
    with pytest.raises(KeyReused):
        started(ann, password=vault.SHORT)
    kept_digest = prompt.request_digest
    settings.SECRET_KEY = "another key of this site, that is long enough"
    with pytest.raises(KeyReused):  # nobody without the key can find out by it what was sent
        started(ann)
    assert kept_digest == Prompt.objects.get().request_digest


# What becomes of it


@pytest.mark.parametrize("end", ["done", "stopped", "erased"])
def test_it_goes_with_the_end(ann: User, site: Site, end: str) -> None:
    prompt = started(ann)
    site.works()
    assert RunSecret.objects.count() == 1
    if end == "done":
        to_the_end(site, prompt, ann)
    elif end == "stopped":
        cancel_prompt(prompt.pk, ann, f"Not with {vault.LONG}.")
    else:
        erase(prompt.conversation, ann, f"It has {vault.LONG}.")
    assert not RunSecret.objects.exists()
    assert telling(kept(), vault.LONG) == []


def test_where_it_is_gone_nothing_runs(ann: User, site: Site) -> None:
    prompt = started(ann)
    site.works()
    RunSecret.objects.all().delete()
    to_the_end(site, prompt, ann)
    result = Output.objects.get(prompt=prompt, type="result").entry().model_dump()["output"]
    assert result["said"]["code"] == "secret_missing"
    assert [host for host, _ in vault.USED] == ["office"]  # the one before
    assert not Step.objects.filter(prompt=prompt, path="2", type="action_start").exists()
    assert verify(prompt.conversation_id).problems == []


def test_nobody_is_asked_about_a_call_whose_secret_is_gone(ann: User, site: Site) -> None:
    prompt = started(ann, vault.fail)
    RunSecret.objects.all().delete()
    site.works()
    prompt.refresh_from_db()
    assert (prompt.state, vault.USED, pending(prompt)) == ("failed", [], [])


@pytest.mark.parametrize(("fallbacks", "code"), [([], "secret_missing"), (["the old key"], None)])
def test_a_new_key_reads_what_the_old_one_wrote(
    ann: User, site: Site, settings: Settings, fallbacks: list[str], code: str | None
) -> None:
    settings.SECRET_KEY = "the old key"
    prompt = started(ann)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "the new key", fallbacks
    to_the_end(site, prompt, ann)
    if code:
        assert (prompt.state, vault.USED) == ("failed", [])
    else:
        assert vault.USED == [("office", vault.LONG)] * 2


def test_a_row_that_is_moved_to_another_run_opens_nothing(ann: User, site: Site) -> None:
    prompt, other = started(ann), start_run(vault.visit, ann, {"host": "home", "password": vault.SHORT})
    kept_row = RunSecret.objects.get(prompt=other)
    meddle("UPDATE conversations_runsecret SET ciphertext = %s WHERE prompt_id = %s", [kept_row.ciphertext, prompt.pk])
    to_the_end(site, prompt, ann)
    assert (prompt.state, vault.USED) == ("failed", [("home", vault.SHORT)])


def test_a_run_with_secrets_is_started_again_from_its_form(ann: User, site: Site) -> None:
    prompt = to_the_end(site, started(ann), ann)
    with pytest.raises(BadInput, match="Start it again from its form"):
        repeat_prompt(prompt.pk, ann)


def test_a_redacted_run_stays_in_order(ann: User, site: Site) -> None:
    prompt = to_the_end(site, started(ann), ann)
    steps = Step.objects.filter(prompt=prompt, type="action_call").values_list("seq", flat=True)
    redact(prompt.conversation, list(steps)[:1], ann, "Not for long.")
    assert verify(prompt.conversation_id).problems == []


# What people say of it while the run lives


def test_what_people_say_hides_it(ann: User, site: Site) -> None:
    prompt = started(ann)
    site.works()
    (gate,) = pending(prompt)
    rename(prompt.conversation, f"With {vault.LONG}")
    decide(gate.pk, ann, "reject", digest=gate.digest, via="page", reason=f"Not with {vault.LONG}!")
    assert telling(kept(), vault.LONG) == []
    assert "Not with [secret]!" in str(kept())
    assert Conversation.objects.get().title == "With [secret]"


def test_the_same_answer_again_is_the_first_one(ann: User, site: Site) -> None:
    prompt = started(ann)
    site.works()
    (gate,) = pending(prompt)
    edited = {"host": f"at {vault.LONG}", "password": REFERENCE, "otp": None}
    for _ in range(2):
        decide(gate.pk, ann, "approve", digest=gate.digest, via="api", input=edited)
    site.works()
    (question,) = pending(prompt)
    for _ in range(2):
        decide(question.pk, ann, "answer", digest=question.digest, via="api", answer=f"Yes, {vault.LONG}")
    assert telling(kept(), vault.LONG) == []
    assert vault.USED[-1] == ("at [secret]", vault.LONG)


def test_it_is_a_word_like_any_other_elsewhere(ann: User, site: Site) -> None:
    started(ann)
    other = start_prompt(start_conversation(ann), ann, f"What is {vault.LONG}?")
    assert other.input == f"What is {vault.LONG}?"


@pytest.mark.parametrize(
    "word",
    ["password", "completed", "action_call", "[secret]", "secret", "workflow", "2026-11-", "runtime"],
)
def test_a_secret_may_be_a_word_of_the_engine(ann: User, site: Site, word: str) -> None:
    word = word.ljust(8, "!")
    prompt = to_the_end(site, started(ann, password=word), ann)
    assert (prompt.state, vault.USED) == ("completed", [("office", word), ("office", word)])
    assert verify(prompt.conversation_id).problems == []


# Who may refer to it


def test_an_edit_keeps_it(ann: User, site: Site) -> None:
    prompt = started(ann)
    site.works()
    (gate,) = pending(prompt)
    (card,) = cards([gate], ann)
    form = edit_form(card)
    assert form
    (kept_field,) = [field for field in form.fields if field.name == "password"]
    assert (kept_field.kind, kept_field.text) == ("kept", "secret: password, not shown")
    posted = edit_form(card, {"line-0": "home", kept_field.key: "mine", "secret-1": "mine", "json-1": '"mine"'})
    assert posted
    assert posted.payload() == {"host": "home", "password": REFERENCE, "otp": None}
    for other in ("mine", {"$secret": "otp"}, {"$secret": "password", "more": 1}, None):
        with pytest.raises(DecisionRefused) as refused:
            decide(gate.pk, ann, "approve", digest=gate.digest, via="api", input={"host": "home", "password": other})
        assert refused.value.code == "invalid_input"
    for more in ({"otp": "1234"}, {"otp": REFERENCE}, {"host": REFERENCE}):
        asked: dict[str, Any] = {"host": "home", "password": REFERENCE, "otp": None, **more}
        with pytest.raises(DecisionRefused):
            decide(gate.pk, ann, "approve", digest=gate.digest, via="api", input=asked)
    decide(gate.pk, ann, "approve", digest=gate.digest, via="api", input=posted.payload())
    to_the_end(site, prompt, ann)
    assert vault.USED == [("office", vault.LONG), ("home", vault.LONG)]
    assert verify(prompt.conversation_id).problems == []


# What streams, and what is kept elsewhere


@BOTH
def test_a_draft_of_a_run_never_tells_one(ann: User, secret: str) -> None:
    """It is written outside of the run, piece by piece."""
    prompt = started(ann, password=secret)
    secrets = RunSecrets({"password": secret})
    for cut in range(1, len(secret)):
        drafts = Drafts(in_this_thread)
        growing = drafts.of(taken(prompt), secrets)
        growing.add("1", f"Key: {secret[:cut]}", 1)
        write(drafts)
        assert Draft.objects.get().text == "Key: "
        growing.add("1", f"{secret[cut:]}.", 1)
        write(drafts)
        assert Draft.objects.get().text == "Key: [secret]."
        Draft.objects.all().delete()
        meddle("UPDATE conversations_prompt SET lease_until = 0")


@pytest.mark.parametrize("written", ["object", "text", "object within", "text within"])
def test_what_others_write_like_a_secret_is_none(ann: User, site: Site, written: str) -> None:
    """A model, or a person, whose words a workflow passes on, cannot have the secret sent anywhere."""
    prompt = to_the_end(site, started(ann, vault.forged, host=written), ann)
    assert vault.LONG not in str(vault.USED)
    assert prompt.state == ("completed" if written == "text" else "failed")  # as a password, it is a text like others


def test_a_secret_that_is_too_short_to_be_hidden_is_refused(ann: User) -> None:
    class Pin(BaseModel):
        pin: SecretStr

    @workflow("vault.short", input=Pin)
    async def short(flow: Flow[Pin]) -> None:
        """Does nothing."""

    assert short.checked({"pin": "1234"}, ann).secrets == {"pin": "1234"}
    with pytest.raises(InvalidInput, match="4 characters or more"):
        short.checked({"pin": "123"}, ann)
