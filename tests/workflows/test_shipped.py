"""The workflows that ship, on a site: the real worker, the real tools, the demo model, and people who decide."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents import discovery
from agents.engine.execution.effect import as_policy
from conversations.approvals.decisions import Conflict, decide
from conversations.files.workspaces import folder_of
from conversations.models import File, Output, Prompt
from conversations.verification.stored import verify
from tests.conversations.recorded import Site, pending
from tests.conversations.support import person
from tests.engine.cast import site as engine_site
from tests.engine.support import ScriptedProvider
from tests.workflows.demo import demo_answer
from workflows.running import start_run
from workflows.shipped.component.workflows import refactor_component
from workflows.shipped.project.workflows import create_project

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann(db: None) -> User:
    return person("ann")


@pytest.fixture(autouse=True)
def _demo(monkeypatch: pytest.MonkeyPatch) -> None:
    use_the_demo(monkeypatch)


def use_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """The site's own tools and policies, and the rules of the demo model."""
    found = discovery.installed()
    registry, _ = engine_site(ScriptedProvider(demo_answer), found.offered)
    for tool in found.tools:
        registry.register(tool.name)(as_policy(tool))
    for each in discovery.added():
        registry.add(each)
    monkeypatch.setattr("agents.registry.policies", lambda: registry)


def result_of(prompt: Prompt) -> Any:
    return Output.objects.get(prompt=prompt, type="result").entry().model_dump()["output"]


def decided(site: Site, prompt: Prompt, by: User) -> Prompt:
    """Let it run to its end, approving whatever it asks."""
    site.works()
    while site.approves(prompt, by):
        site.works()
    prompt.refresh_from_db()
    return prompt


def test_a_newcomer_sets_up_a_project_and_refactors_it(ann: User, site: Site) -> None:
    """From the form to the result, twice in one workspace, with the tests of the project run for real."""
    made = decided(site, start_run(create_project, ann, {"name": "Corner Shop"}), ann)
    assert (made.state, made.input) == ("completed", "/project.create name='Corner Shop'")
    assert result_of(made)["tests"] == "They passed."
    assert [file.name for file in File.objects.filter(conversation=made.conversation)] == ["corner-shop.zip"]

    path = "corner-shop/corner_shop/receipt.py"
    run = decided(site, start_run(refactor_component, ann, {"path": path}, conversation=made.conversation), ann)
    assert (run.state, result_of(run)["files"], result_of(run)["tests"]) == ("completed", [path], "They passed.")
    assert "WIDTH = 40" in (folder_of(run.conversation_id) / path).read_text()
    assert [str(problem) for problem in verify(run.conversation_id).problems] == []

    client = Client()
    client.force_login(ann)
    page = client.get(f"/c/{run.conversation_id}/").text
    assert "new folder" in page  # the card of the project
    assert 'aria-label="Changes"' in page
    assert "1 file changed, 5 lines added, 3 removed." in page
    assert "changes.diff" in page


def test_who_edits_the_card_gets_the_project_that_they_typed(ann: User, site: Site) -> None:
    run = start_run(create_project, ann, {"name": "Corner Shop", "tests": False})
    site.works()
    (gate,) = pending(run)
    edited: dict[str, Any] = {"name": "Tea House", "kind": "website", "description": "", "folder": ""}
    with pytest.raises(Conflict) as raised:  # the facts are others now: they are shown first
        decide(gate.pk, ann, "approve", digest=gate.digest, input=edited, via="page")
    assert "tea-house" in str(raised.value.details["facts"])
    decide(gate.pk, ann, "approve", digest=raised.value.details["digest"], input=edited, via="page")
    site.works()
    run.refresh_from_db()
    assert (run.state, result_of(run)["folder"]) == ("completed", "tea-house")
    assert not (folder_of(run.conversation_id) / "corner-shop").exists()
    assert [file.name for file in File.objects.filter(conversation=run.conversation)] == ["tea-house.zip"]


def test_it_is_refused_in_a_workspace_that_has_the_folder(ann: User, site: Site) -> None:
    made = decided(site, start_run(create_project, ann, {"name": "Shop", "tests": False}), ann)
    again = decided(site, start_run(create_project, ann, {"name": "Shop"}, conversation=made.conversation), ann)
    texts = [row.entry().model_dump()["text"] for row in Output.objects.filter(prompt=again, type="text")]
    assert again.state == "failed"
    assert texts == [
        "'shop' exists in this workspace already, and nothing is written over: choose another name or folder."
    ]
    assert not Output.objects.filter(prompt=again, tool="project.write").exists()
