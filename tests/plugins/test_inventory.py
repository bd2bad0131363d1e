"""`manage.py agents`: what a site has for its agents, for people and for programs."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from agents import Plugin, Round, ToolCall, discovery, tool
from agents.models import Skill
from tests.agentsite.processes import run, variables
from tests.conversations.travel import plan, words


def run_agents(*options: str) -> str:
    out = StringIO()
    call_command("agents", *options, stdout=out)
    return out.getvalue()


@pytest.fixture
def _skills(db: None) -> None:
    Skill.objects.create(name="numbers", description="d", body="b", tools=["csv.summary", "gone.tool"])
    Skill.objects.create(name="old", description="d", body="b", tools=["files.read"], enabled=False)


@pytest.mark.usefixtures("_skills")
def test_programs_get_every_tool_plugin_and_skill(settings: Any) -> None:
    settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "sk-secret", "https://me:pw@models.example/v1?key=1"
    found = json.loads(run_agents("--json"))
    tools = {tool["name"]: tool for tool in found["tools"]}
    assert list(tools) == [tool.name for tool in discovery.installed().tools]
    description, schema = (tools["csv.summary"].pop(name) for name in ("description", "schema"))
    assert description.startswith("Summarize each column of a CSV file")
    assert "path" in schema["properties"]
    assert tools["csv.summary"] == {
        "name": "csv.summary",
        "wire_name": "csv_summary",
        "title": "Summarize a CSV file",
        "is_policy": False,
        "risk": "read",
        "gate": "no",
        "reason": "",
        "four_eyes": False,
        "idempotent": True,
        "time_limit": None,
        "approval_hours": None,
        "category": "Tables",
        "priority": 0,
        "owner": "agents.plugins.tables.tools",
        "plugin": "",
        "offered": True,
        "added_by": [],
        "skills": ["numbers"],
    }
    assert tools["shell.run"]["gate"] == "yes"
    assert tools["skills.activate"]["plugin"] == "skills"
    assert tools["files.read"]["skills"] == []  # only a skill that is enabled holds a tool
    assert tools["results.read"]["priority"] > 0
    assert found["plugins"][-1] == {
        "name": "tools",
        "order": 2000,
        "owner": "agents.plugins.tools.plugin",
        "offered_anyway": [],
    }
    assert found["skills"][0] == {
        "name": "numbers",
        "enabled": True,
        "tools": ["csv.summary", "gone.tool"],
        "missing": ["gone.tool"],
    }
    assert (found["model"]["api"], found["model"]["server"]) == ("responses", "https://models.example/v1")


@pytest.mark.usefixtures("_skills")
def test_people_get_lines_that_fit_a_terminal(settings: Any) -> None:
    settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "", ""
    text = run_agents()
    assert max(map(len, text.splitlines())) <= 100
    lines = [" ".join(line.split()) for line in text.splitlines()]
    summary = lines.index("csv.summary Summarize a CSV file read no skill numbers")
    assert lines[lines.index("csv.summary 0") - 1] == "Tables"
    assert lines.index("Files") < lines.index("Tables") < lines.index("results.read 1000")
    assert lines[summary - 1] == "agents.plugins.tables.tools"
    assert "numbers enabled csv.summary, gone.tool (not installed)" in lines
    assert "old off files.read" in lines
    assert "server the demo model that `manage.py serve` starts" in lines


@tool("basket.order", offered=False, title="Order the basket")
def order(call: ToolCall) -> str:
    """Order what is in the basket."""
    return "ordered"


@tool("basket.pack", title="Pack the basket")
def pack(call: ToolCall) -> str:
    """Pack what is in the basket."""
    return "packed"


@tool("basket.add", title="Add to the basket")
def add(call: ToolCall) -> str:
    """Put something into the basket."""
    return "added"


class Basket(Plugin):
    """Pushes two tools; one of them without having said so."""

    name = "basket"

    async def prepare(self, round: Round) -> None:
        seen: set[int] = set()
        seen.add(round.number)  # this is no tool
        round.tools.extend(each for each in [order, pack] if round.outputs)


@pytest.mark.usefixtures("_skills")
def test_a_plugin_that_pushes_what_is_offered_anyway_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose time has not come: its code is read, not run."""
    there_is = discovery.installed()
    found = replace(there_is, tools=(add, order, pack, *there_is.tools), plugins=(Basket, *there_is.plugins))
    monkeypatch.setattr(discovery, "installed", lambda: found)
    listed = json.loads(run_agents("--json"))
    not_offered = [tool["name"] for tool in listed["tools"] if not tool["offered"]]
    shipped = ["component.read", "documents.find", "documents.read", "documents.search", "project.check"]
    shipped += ["project.write", "skills.add", "skills.read", "workspace.delete", "workspace.look"]
    assert not_offered == ["basket.order", *shipped]
    assert listed["plugins"][0]["offered_anyway"] == ["basket.pack"]
    assert {tool["name"]: tool["added_by"] for tool in listed["tools"]}["basket.order"] == ["basket"]
    lines = [" ".join(line.split()) for line in run_agents().splitlines()]
    assert "basket.order Order the basket destructive yes a plugin or workflow" in lines
    at = lines.index("basket 100 tests.plugins.test_inventory")
    assert lines[at + 1] == "basket.pack is offered anyway: declare it with offered=False"


@pytest.mark.usefixtures("_skills")
def test_policies_are_listed_with_whether_models_may_call_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found = discovery.Found(discovery.installed().tools, (), (plan, words))
    monkeypatch.setattr(discovery, "installed", lambda: found)
    listed = json.loads(run_agents("--json"))["policies"]
    assert listed[0] == {"name": "travel.plan", "title": "Plan a trip", "offered": False, "owner": plan.owner}
    lines = [" ".join(line.split()) for line in run_agents().splitlines()]
    assert f"travel.plan Plan a trip no {plan.owner}" in lines
    assert f"travel.words Count words yes {words.owner}" in lines


def test_before_the_first_start_it_lists_all_but_the_skills(tmp_path: Path) -> None:
    environment = variables(tmp_path)
    (tmp_path / "data" / "agentsite.sqlite3").unlink()
    ended = run("manage.py", "agents", environment=environment)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "shell.run" in ended.stdout
    assert "They are in the database, which cannot be read: `manage.py serve` sets it up." in ended.stdout
    listed = json.loads(run("manage.py", "agents", "--json", environment=environment).stdout)
    assert listed["skills"] is None
