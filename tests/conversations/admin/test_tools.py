"""The catalogue of tools in the admin: what is declared of them, and who used them how often (R8)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents import Plugin, Risk, Round, ToolCall, discovery, tool
from agents.categories import Category
from agents.engine.ledger import Step
from agents.engine.tools.snapshot import snapshot_text
from agents.inventory import ToolEntry, catalogue
from agents.models import Skill
from conversations.models import Prompt, Snapshot
from conversations.usage.tools import Calls, counts_by_tool, counts_of
from tests.conversations.live_page import Element, parsed
from tests.conversations.support import Story, person
from tests.conversations.travel import words

pytestmark = pytest.mark.django_db

TOOLS = "/admin/conversations/tooluse/"
LONG = "x" * 90
QUERIES_MOST = 16
"""However many tools there are. Nine of them are the session, the person, and the sidebar."""


@tool(
    "post.send",
    risk=Risk.EXFILTRATION,
    approval="It leaves the house.",
    four_eyes=True,
    category=Category("post", "Post & <b>parcels</b>"),
    time_limit=7.5,
    approval_hours=1,
    priority=5000,
    title="Send a letter",
)
def send(call: ToolCall) -> str:
    """Send a letter, <script>alert(1)</script>."""
    return "sent"


@tool(LONG, approval=lambda call: True, offered=False, title="Pushed")
def pushed(call: ToolCall) -> str:
    """Pushed by a plugin."""
    return ""


class Pushes(Plugin):
    name = "pusher"

    async def prepare(self, round: Round) -> None:
        round.tools.append(pushed)


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = discovery.installed()
    tools = tuple(sorted((*shipped.tools, send, pushed), key=lambda tool: tool.name))
    found = replace(shipped, tools=tools, plugins=(*shipped.plugins, Pushes), policies=(words,))
    monkeypatch.setattr(discovery, "installed", lambda: found)


@pytest.fixture
def chief(client: Client) -> User:
    user = person("chief", is_superuser=True, is_staff=True)
    client.force_login(user)
    return user


@pytest.fixture
def anna() -> User:
    return person("anna", first_name="Anna")


def used(owner: User, name: str, *endings: str, days_ago: float = 0) -> Prompt:
    """A turn that calls the tool once for each ending: ok, failed, rejected, expired, or open."""
    story = Story(owner)
    story.asks_model()
    calls = [story.call(name) for _ in endings]
    story.answers(*calls)
    for call, ending in zip(calls, endings, strict=True):
        if ending in ("rejected", "expired"):
            decision, by = ("expired", "system") if ending == "expired" else ("reject", f"user:{owner.pk}")
            decided = {"decision": decision, "via": "page"}
            story.append(Step(by, "action_result", decided, story.gate(call).gate_path))
            story.fails(call, ending, "It did not run.")
        elif ending == "failed":
            story.fails(call, "failed", "It broke.")
        elif ending == "ok":
            story.comes_to(call, "done")
    began = timezone.now() - timedelta(days=days_ago)
    Prompt.objects.filter(pk=story.prompt.pk).update(created_at=began)
    return story.prompt


def page(client: Client, address: str = "") -> Element:
    response = client.get(f"{TOOLS}{address}")
    assert response.status_code == 200
    content = parsed(response.text).find("content-main")
    assert content
    return content


def rows(client: Client, query: str = "") -> dict[str, list[str]]:
    """The cells of each tool in the list, in order, by its name."""
    found = {}
    for row in all_of(page(client, query), "tr"):
        name, *cells = [cell.text() for cell in row.elements]
        if cells[-1] != "All calls":
            found[name.partition(" ")[0]] = [name, *cells]
    return found


def all_of(element: Element, tag: str) -> Iterator[Element]:
    for child in element.elements:
        if child.tag == tag:
            yield child
        yield from all_of(child, tag)


def test_all_tools_are_listed_as_their_authors_declared_them(client: Client, chief: User) -> None:
    Skill.objects.create(name="numbers", description="d", body="b", tools=["csv.summary", "files.read"])
    Skill.objects.create(name="off", description="d", body="b", tools=["files.list"], enabled=False)
    found = rows(client)
    assert list(found) == [entry.name for entry in catalogue()]
    assert {tool.name for tool in discovery.installed().tools} < set(found)
    title = "post.send Send a letter"
    assert found["post.send"] == [
        title, "Post & <b>parcels</b>", "Leaves the site", "Always", "From the beginning", "0", "0"
    ]  # fmt: skip
    assert found[LONG][3:5] == ["By rule", "When a plugin adds it"]
    assert found["csv.summary"][4] == found["files.read"][4] == "With a skill"
    assert found["files.list"][3:5] == ["Never", "From the beginning"]
    assert found["project.write"][4] == "To workflows and policies"
    assert found["travel.words"][:3] == ["travel.words Count words", "-", "Writes"]  # a policy that models may call


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?q=LETTER+send", ["post.send"]),
        ("?q=post_send", ["post.send"]),
        ("?owner=agents.plugins.shell.tools", ["shell.program", "shell.run"]),
        ("?category=Files&asks=Always", ["files.edit", "files.write", "workspace.delete"]),
        ("?risk=Leaves+the+site", ["post.send"]),
        ("?asks=By+rule", [LONG, "blueprints.propose", "memory.forget", "trigger.create", "trigger.delete"]),
        ("?offered=Not+installed", ["gone.tool"]),
        ("?owner=no.such.module", []),
        ("?q=%00%E2%80%AE", []),
    ],
)
def test_search_and_filters(client: Client, chief: User, anna: User, query: str, names: list[str]) -> None:
    used(anna, "gone.tool", "ok")
    assert sorted(rows(client, query)) == sorted(names)
    if not names:
        assert "No tools match." in page(client, query).text()


def test_the_list_can_begin_with_the_most_used_or_the_most_important(client: Client, chief: User, anna: User) -> None:
    used(anna, "files.read", "ok", "ok", days_ago=40)
    used(anna, "files.list", "ok")
    assert list(rows(client, "?sort=all"))[:2] == ["files.read", "files.list"]
    assert list(rows(client, "?sort=month"))[:1] == ["files.list"]
    assert list(rows(client, "?sort=priority"))[:1] == ["post.send"]


def test_use_is_counted_by_how_calls_ended_and_by_whom(client: Client, chief: User, anna: User) -> None:
    bert = person("bert")
    used(anna, "shell.run", "ok", "ok", "failed", days_ago=31)
    last = used(anna, "shell.run", "ok", "rejected", "expired", "open", days_ago=29)
    used(bert, "shell.run", "failed")
    used(bert, "files.read", "ok")
    month = Calls(calls=5, succeeded=1, failed=1, rejected=1, undecided=1)
    assert counts_of("shell.run").month == month
    assert counts_of("shell.run").all == month + Calls(calls=3, succeeded=2, failed=1)
    assert rows(client)["shell.run"][-2:] == ["5", "8"]
    text = page(client, "shell.run/").text()
    assert "Last 30 days 5 1 1 1 1 In all 8 3 2 1 1" in text
    assert "Used by 30 days All calls Anna 4 7 bert 1 1" in text
    assert f"/admin/conversations/prompt/{last.pk + 1}/change/" in client.get(f"{TOOLS}shell.run/").text


def test_turns_that_the_site_started_are_nobodys(client: Client, chief: User, anna: User) -> None:
    prompt = used(anna, "files.read", "ok")
    Prompt.objects.filter(pk=prompt.pk).update(asked_by=None)
    assert "Turns that the site started 1 1" in page(client, "files.read/").text()


def test_questions_to_people_are_no_calls_of_a_tool(client: Client, chief: User, anna: User) -> None:
    Story(anna).asks_person("Which one?")
    assert "human" not in rows(client)


def test_the_page_of_a_tool_says_what_is_declared_and_what_a_model_reads(client: Client, chief: User) -> None:
    text = page(client, "post.send/").text()
    for said in (
        "Send a letter post.send Leaves the site",
        "No agent has used it yet.",
        "Asks a person Always: It leaves the house.",
        "Four eyes Yes",
        "After 1 hour",
        "Idempotent No",
        "Time limit 7.5 s",
        "Priority 5000",
        "Owner tests.conversations.admin.test_tools",
        "Name post_send",
        "Description Send a letter, <script>alert(1)</script>.",
        '"additionalProperties": false',
    ):
        assert said in text
    assert "<script>alert" not in client.get(f"{TOOLS}post.send/").text
    assert "When a plugin adds it: pusher" in page(client, f"{LONG}/").text()
    assert "60 s, as set for this site" in page(client, "files.read/").text()
    assert "The plugin skills" in page(client, "skills.activate/").text()
    assert "The tools that it calls ask for themselves." in page(client, "travel.words/").text()


def test_the_schema_is_the_one_that_a_model_reads(client: Client, chief: User) -> None:
    """Whole and readable, of a tool and of a policy alike."""
    for entry in (_entry("shell.run"), _entry("travel.words")):
        shown = next(all_of(page(client, f"{entry.name}/"), "pre"))
        assert json.loads(shown.text()) == entry.schema


def _entry(name: str) -> ToolEntry:
    return next(entry for entry in catalogue() if entry.name == name)


def test_a_tool_that_is_gone_is_listed_and_a_name_that_a_model_made_up_is_not(
    client: Client, chief: User, anna: User
) -> None:
    used(anna, "gone.tool", "ok", "failed")
    for name in ("made.up", "Made/Up", "../..", "rejected.tool"):
        used(anna, name, "rejected" if name == "rejected.tool" else "failed")
    used(anna, "Not A Name", "ok")
    found = rows(client)
    assert found["gone.tool"] == ["gone.tool", "-", "-", "-", "Not installed", "2", "2"]
    assert not {"made.up", "Made/Up", "../..", "rejected.tool", "Not"} & set(found)
    assert "no installed app declares it" in page(client, "gone.tool/").text()
    assert client.get(f"{TOOLS}made.up/").status_code == 404
    assert client.get(f"{TOOLS}no%20such%00/").status_code == 404


def test_of_a_tool_that_is_gone_it_shows_what_the_last_round_that_called_it_read(
    client: Client, chief: User, anna: User
) -> None:
    offered = snapshot_text("You are helpful.", [replace(send, name="gone.tool")])
    Snapshot.objects.create(sha256="s" * 64, text=offered)
    story = Story(anna)
    story.asks_model(snapshot="s" * 64)
    call = story.call("gone.tool")
    story.answers(call)
    story.comes_to(call, "done")
    text = page(client, "gone.tool/").text()
    assert "What a model last read Name gone_tool Description Send a letter" in text


def test_it_takes_a_permission_of_its_own(client: Client, anna: User) -> None:
    for staff, status in ((person("stan", is_staff=True), 403), (person("kim", "view_tooluse", is_staff=True), 200)):
        client.force_login(staff)
        assert [client.get(f"{TOOLS}{rest}").status_code for rest in ("", "shell.run/")] == [status] * 2
        assert ("Tools" in client.get("/admin/").text) is (status == 200)
    used(anna, "shell.run", "ok")
    assert "/conversations/prompt/" not in client.get(f"{TOOLS}shell.run/").text  # the record needs its own permission


def test_it_asks_the_database_no_more_however_many_tools_were_used(client: Client, chief: User, anna: User) -> None:
    def queries(address: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            page(client, address)
        return len(asked)

    client.get(TOOLS)
    before = queries("")
    for number in range(12):
        used(anna, f"gone.tool{number}", "ok")
    assert queries("") == before <= QUERIES_MOST
    assert queries("gone.tool1/") <= QUERIES_MOST


def test_counting_reads_an_index_alone(anna: User) -> None:
    """Whatever is on record: with a million outputs it takes a tenth of a second."""
    used(anna, "shell.run", "ok")
    with CaptureQueriesContext(connection) as asked:
        counts_by_tool()
        counts_of("shell.run")
    counting = [query["sql"] for query in asked if "GROUP BY" in query["sql"]]
    assert len(counting) == 2
    for sql in counting:
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET LOCAL enable_seqscan = off")
                cursor.execute("SET LOCAL enable_bitmapscan = off")
                cursor.execute(f"EXPLAIN {sql}")
                plan = "\n".join(row[0] for row in cursor)
                assert "Index Only Scan using output_tools" in plan
            else:
                cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
                assert "COVERING INDEX output_tools" in "\n".join(row[3] for row in cursor)
