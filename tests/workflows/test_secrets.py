"""Secrets of runs: given once, used by tools, and on record nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from agents.engine.secrets import _encodings
from agentsite.logs import JsonFormatter
from conversations.approvals.decisions import decide
from conversations.models import Output, Prompt, RunSecret, Step
from conversations.verification.stored import verify
from tests.conversations.recorded import Site, pending
from tests.conversations.support import person
from tests.workflows import vault
from tests.workflows.shop import installed
from workflows.definition import Workflow
from workflows.running import start_run

pytestmark = pytest.mark.django_db

BOTH = pytest.mark.parametrize("secret", [vault.LONG, vault.SHORT])


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
    assert telling({"log": caplog.text}, secret) == []
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
