"""The history: one for all of a person's runs, however they were started; filters, search, pages and stars."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.core.management.base import OutputWrapper
from django.test import Client
from django.urls import reverse
from pydantic import BaseModel, SecretStr

from agents.engine.errors import RegistryError
from conversations.erasure.conversations import erase
from conversations.erasure.people import erase_user
from conversations.erasure.steps import redact
from conversations.models import Origin, Prompt, Quota
from conversations.prompts.start import cancel_prompt, start_conversation, start_prompt
from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.workflows import shop
from workflows import Flow, discovery, workflow
from workflows.definition import Workflow
from workflows.history import RunFilter, last_runs, runs_of
from workflows.models import RunStar, WorkflowSetting, WorkflowStar
from workflows.pages.runs import RUNS_MOST
from workflows.pages.selector import needs
from workflows.running import start_run
from workflows.stars import star_run, star_workflow

pytestmark = pytest.mark.django_db


class Note(BaseModel):
    text: str
    pieces: int = 1
    place: str = ""


@workflow("shop.note", title="Take a note", category=shop.SHOP)
async def note(flow: Flow[Note]) -> dict[str, str]:
    """Says backwards what it was given."""
    return {"backwards": flow.input.text[::-1]}


INSTALLED = (*shop.ALL, note)
RUNS = reverse("runs")


@pytest.fixture(autouse=True)
def _installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with shop.installed(site, monkeypatch, workflows=INSTALLED):
        yield


@pytest.fixture
def ann() -> User:
    user = person("ann")
    Quota.objects.create(user=user, running_prompts=0)
    return user


@pytest.fixture
def client(ann: User) -> Client:
    client = Client()
    client.force_login(ann)
    return client


def noted(user: User, text: str, **more: Any) -> Prompt:
    return start_run(note, user, {"text": text}, **more)


def words(response: Any) -> str:
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def listed(client: Client, address: str = RUNS, **query: str) -> list[int]:
    """Return the ids of the runs on a page, in their order."""
    return [int(pk) for pk in re.findall(r'<li id="run-(\d+)"', words(client.get(address, query)))]


def test_it_has_the_runs_of_all_workflows_of_this_person_alone(client: Client, ann: User) -> None:
    first, second = noted(ann, "milk"), start_run(shop.fail, ann, {})
    in_chat = start_run(shop.order, ann, {"item": "paper"}, conversation=start_conversation(ann, "Shelves"))
    start_prompt(start_conversation(ann), ann, "Hello.")
    noted(person("bob"), "theirs")
    assert listed(client) == [in_chat.pk, second.pk, first.pk]
    page = words(client.get(RUNS))
    assert ("Take a note" in page, "milk" in page, "in Shelves" in page, "theirs" in page) == (True, True, True, False)


def test_how_it_was_started_is_said_and_filtered(client: Client, ann: User) -> None:
    origins = {"site": Origin.WORKFLOW, "api": Origin.API, "command": Origin.COMMAND, "trigger": Origin.TRIGGER}
    runs = {asked: noted(ann, "milk", origin=origin) for asked, origin in origins.items()}
    page = words(client.get(RUNS))
    for started in ("the API", "the command line", "a trigger"):
        assert f"started by {started}," in page
    for asked, run in runs.items():
        assert listed(client, started_by=asked) == [run.pk]
    assert len(listed(client, started_by="nobody")) == 4


def test_the_command_and_a_program_are_in_it(client: Client, ann: User) -> None:
    with pytest.raises(SystemExit):  # its code says that the run is open
        call_command("run_workflow", "shop.note", "text=milk", "--user=ann", stdout=OutputWrapper(io.StringIO()))
    client.post("/api/workflows/shop.note/run/", {"parameters": {"text": "tea"}}, content_type="application/json")
    client.post(reverse("workflow", args=["shop.note"]), {"key": "k", "line-0": "bread"})
    found = [(run.input, run.origin) for run in runs_of(ann)]
    assert found == [
        ("/shop.note text=bread", "workflow"), ("/shop.note text=tea", "api"), ("/shop.note text=milk", "command"),
    ]  # fmt: skip


def test_filters_work_together(client: Client, ann: User, site: Site) -> None:
    done, failed = noted(ann, "milk"), start_run(shop.fail, ann, {})
    site.works()
    stopped = noted(ann, "tea")
    cancel_prompt(stopped.pk, ann)
    star_run(ann, done, True)
    assert listed(client, workflow="shop.note") == [stopped.pk, done.pk]
    assert listed(client, state="failed") == [failed.pk]
    assert listed(client, state="cancelled") == [stopped.pk]
    assert listed(client, workflow="shop.note", state="completed") == [done.pk]
    assert listed(client, starred="1") == [done.pk]
    assert listed(client, starred="1", state="failed") == []
    for query in ({"starred": "1", "state": "failed"}, {"workflow": "shop.order"}):
        nothing = words(client.get(RUNS, query))
        assert ("No run matches." in nothing, 'class="filters"' in nothing) == (True, True)
    assert "There are no more runs." in words(client.get(RUNS, {"before": str(done.pk)}))
    one = reverse("workflow-runs", args=["shop.fail"])
    assert (listed(client, one), listed(client, one, workflow="shop.note")) == ([failed.pk], [failed.pk])


def test_the_search_reads_lines_and_results(client: Client, ann: User, site: Site) -> None:
    milk, tea, failed = noted(ann, "Milch für Äpfel"), noted(ann, "tea"), start_run(shop.fail, ann, {})
    site.works()
    assert listed(client, q="milch") == [milk.pk]
    assert listed(client, q="MILCH äpfel") == [milk.pk]
    assert listed(client, q="aet") == [tea.pk]  # the result: {"backwards": "aet"}
    assert listed(client, q="lefpä") == [milk.pk]
    assert listed(client, q="shop closed") == [failed.pk]
    assert listed(client, q="shop.note") == [tea.pk, milk.pk]
    assert listed(client, q="milch tea") == []
    for key in ("parent", "position", "created_at", "%", "_x", "\\"):  # of how results are stored, and of LIKE
        assert listed(client, q=key) == []


def test_pages_follow_one_another_whatever_comes_meanwhile(client: Client, ann: User) -> None:
    runs = [noted(ann, f"n{number}").pk for number in range(2 * RUNS_MOST + 3)][::-1]
    first = listed(client)
    assert first == runs[:RUNS_MOST]
    noted(ann, "new")
    second = listed(client, before=str(first[-1]))
    assert second == runs[RUNS_MOST : 2 * RUNS_MOST]
    last = words(client.get(RUNS, {"before": str(second[-1])}))
    assert ("Older</a>" in last, "Newer</a>" in last, "Newest</a>" in last) == (False, True, True)
    assert listed(client, after=str(runs[2 * RUNS_MOST])) == second
    assert len(listed(client, after=str(second[0]))) == RUNS_MOST
    assert ("Older</a>" in words(client.get(RUNS)), "Newer</a>" in words(client.get(RUNS))) == (True, False)
    for nonsense in ("0", "x", "9" * 30, "-1"):
        assert len(listed(client, before=nonsense)) == RUNS_MOST
        assert len(listed(client, after=nonsense)) == RUNS_MOST


def test_a_page_keeps_its_filters(client: Client, ann: User) -> None:
    for number in range(RUNS_MOST + 1):
        noted(ann, f"milk {number}")
    page = words(client.get(RUNS, {"q": "milk", "workflow": "shop.note"}))
    older = re.search(r'href="\?(q=milk&amp;workflow=shop.note&amp;before=\d+)"', page)
    assert older
    assert '<option value="shop.note" selected>' in page


def test_a_workflow_that_is_not_installed_any_more_stays_in_it(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = noted(ann, "milk")
    monkeypatch.setattr(discovery, "installed", lambda: {each.name: each for each in shop.ALL})
    page = words(client.get(RUNS))
    assert ("/shop.note text=milk" in page, "no longer installed" in page, "Run again" in page) == (
        True, True, False,
    )  # fmt: skip
    assert listed(client, workflow="shop.note") == [run.pk]


def test_who_may_run_it_no_more_has_no_way_to_run_it_again(client: Client, ann: User) -> None:
    noted(ann, "milk")
    WorkflowSetting.objects.create(name="shop.note", enabled=False)
    page = words(client.get(RUNS))
    assert ("milk" in page, "Run again" in page) == (True, False)


def test_the_last_run_of_each_workflow(ann: User) -> None:
    assert last_runs(ann) == {}
    noted(ann, "old")
    failed, new = start_run(shop.fail, ann, {}), noted(ann, "new")
    start_prompt(start_conversation(ann), ann, "Hello.")
    noted(person("bob"), "theirs")
    assert last_runs(ann) == {"shop.fail": failed.pk, "shop.note": new.pk}


def test_the_selector_says_how_the_last_run_ended(client: Client, ann: User, site: Site) -> None:
    start_run(shop.fail, ann, {})
    site.works()
    page = words(client.get(reverse("workflows")))
    row = page[page.index('id="flow-shop.fail"') :].partition("</li>")[0]
    assert ("You ran this" in row, 'class="mark bad"' in row) == (True, True)
    assert '<span class="vh">: failed</span>' in row


class Door(BaseModel):
    name: str
    password: SecretStr


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "3 fields"),
        ({"input": Door}, "2 fields · takes a secret"),
        ({"input": shop.fail.input}, "no input"),
        ({"workspace": "required", "confirm": True}, "3 fields · works in a chat of yours · asks before it starts"),
        ({"workspace": True}, "3 fields · can work in a chat of yours"),
    ],
)
def test_the_selector_says_what_a_workflow_needs(changes: dict[str, Any], said: str) -> None:
    assert needs(replace(note, **changes)) == said


def test_a_star_is_given_and_taken_away(client: Client, ann: User) -> None:
    star = reverse("workflow-star", args=["shop.note"])
    assert 'id="starred"' not in words(client.get(reverse("workflows")))
    sent = client.post(star, {"starred": "1", "q": "note"})
    assert (sent.status_code, sent["Location"]) == (302, "/workflows/?q=note#flow-shop.note")
    page = words(client.get(reverse("workflows")))
    assert 'id="starred">Starred</h2>' in page
    assert page.count('aria-pressed="true" aria-label="Star Take a note"') == 2
    client.post(star, {"starred": "1"})
    assert WorkflowStar.objects.get().user == ann
    assert 'id="starred"' not in words(client.get(reverse("workflows"), {"q": "note"}))
    swapped = words(client.post(star, {"starred": "", "q": "note"}, headers={"HX-Request": "true"}))
    assert ("<html" in swapped, "Take a note" in swapped, "Open a ticket" in swapped) == (False, True, False)
    assert not WorkflowStar.objects.exists()
    assert client.post(reverse("workflow-star", args=["no.such"]), {"starred": "1"}).status_code == 404


def test_a_run_is_starred_by_its_person_alone(client: Client, ann: User) -> None:
    run, theirs = noted(ann, "milk"), noted(person("bob"), "theirs")
    sent = client.post(reverse("run-star", args=[run.pk]), {"starred": "1", "filters": "q=milk\r\nX: y"})
    assert sent["Location"] == f"/workflows/runs/?q=milk%0D%0AX%3A+y#run-{run.pk}"
    assert listed(client, starred="1") == [run.pk]
    button = words(client.post(reverse("run-star", args=[run.pk]), {}, headers={"HX-Request": "true"}))
    assert (button.startswith("<button"), 'aria-pressed="false"' in button) == (True, True)
    assert listed(client, starred="1") == []
    assert client.post(reverse("run-star", args=[theirs.pk]), {"starred": "1"}).status_code == 404
    assert not RunStar.objects.exists()


def test_stars_go_with_the_run_and_with_the_person(ann: User) -> None:
    chief = User.objects.create_superuser("chief")
    run, other = noted(ann, "milk"), noted(ann, "tea")
    for each in (run, other):
        star_run(ann, each, True)
        cancel_prompt(each.pk, ann)
    star_workflow(ann, "shop.note", True)
    erase(run.conversation, chief)
    assert [star.prompt for star in RunStar.objects.all()] == [other]
    erase_user(ann, chief)
    assert (RunStar.objects.count(), WorkflowStar.objects.count()) == (0, 0)
    star_workflow(ann, "shop.note", True)  # a request that came late
    assert not WorkflowStar.objects.exists()


def test_what_was_redacted_is_found_by_no_search_and_keeps_its_star(client: Client, ann: User) -> None:
    chief = User.objects.create_superuser("chief")
    run = noted(ann, "hunter2")
    star_run(ann, run, True)
    cancel_prompt(run.pk, ann)
    assert listed(client, q="hunter2") == [run.pk]
    redact(run.conversation, [run.steps.order_by("seq")[0].seq], chief, "Asked for.")
    assert (listed(client, q="hunter2"), listed(client, starred="1")) == ([], [run.pk])
    page = words(client.get(RUNS))
    assert ("Input redacted" in page, "hunter2" in page, "Run again" in page) == (True, False, False)


def changed(model: type[BaseModel]) -> Workflow:
    return replace(note, input=model)


class Renamed(BaseModel):
    words: str
    pieces: int = 1


class OtherTypes(BaseModel):
    text: list[str]
    pieces: Literal["one", "two"] = "one"
    place: str = ""


class Tighter(BaseModel):
    text: str
    pieces: int
    place: Literal["north", "south"] = "north"


@pytest.mark.parametrize(
    ("model", "dropped", "unfit", "kept"),
    [
        (Renamed, "place, text", "", ["7"]),
        (OtherTypes, "", "Text, Pieces", ["milk", "7", "shelf"]),
        (Tighter, "", "Place", ["milk", "7", "shelf"]),
        (Note, "", "", ["milk", "7", "shelf"]),
    ],
)
def test_run_again_keeps_what_it_can_and_names_the_rest(
    ann: User, monkeypatch: pytest.MonkeyPatch, *, model: type[BaseModel], dropped: str, unfit: str, kept: list[str]
) -> None:
    run = start_run(note, ann, {"text": "milk", "pieces": 7, "place": "shelf"})
    monkeypatch.setattr(discovery, "installed", lambda: {"shop.note": changed(model)})
    client = Client()
    client.force_login(ann)
    page = words(client.get(reverse("workflow-again", args=["shop.note", run.pk])))
    assert (f"The form no longer has {dropped}." in page) == bool(dropped)
    assert (f"The form no longer accepts the old value of {unfit}." in page) == bool(unfit)
    assert ("no longer" in page) == bool(dropped or unfit)
    form = page[page.index('<form class="form"') :]
    assert [value for value in kept if value not in form] == []
    assert form.count('class="err"') == len(unfit.split(", ") if unfit else [])
    assert Prompt.objects.count() == 1


def test_the_values_of_the_last_run_are_a_link_away(client: Client, ann: User) -> None:
    form = reverse("workflow", args=["shop.note"])
    assert "Use the values of your last run" not in words(client.get(form))
    noted(ann, "old")
    run = noted(ann, "milk")
    page = words(client.get(form))
    address = reverse("workflow-again", args=["shop.note", run.pk])
    assert f'<a href="{address}">Use the values of your last run</a>' in page
    assert 'value="milk"' not in page
    assert 'value="milk"' in words(client.get(address))


def test_programs_read_the_same_history(client: Client, ann: User, site: Site) -> None:
    done, failed = noted(ann, "milk"), start_run(shop.fail, ann, {}, origin=Origin.API)
    site.works()
    star_run(ann, done, True)
    noted(person("bob"), "theirs")

    def ids(**query: str) -> list[int]:
        return [each["id"] for each in client.get("/api/workflows/runs/", query).json()["results"]]

    assert ids() == [failed.pk, done.pk]
    assert ids(workflow="shop.note") == ids(starred="true") == ids(search="klim") == [done.pk]
    assert ids(state="failed") == ids(started_by="api") == [failed.pk]
    of_one = client.get("/api/workflows/shop.note/runs/", {"starred": "true"}).json()
    (told,) = of_one["results"]
    assert (told["id"], told["starred"], told["origin"], of_one["count"]) == (done.pk, True, "workflow", 1)
    for name in ("state", "started_by", "starred"):
        refused = client.get("/api/workflows/runs/", {name: "nonsense"})
        assert refused.status_code == 400
        assert refused.json()["error"]["fields"][name][0].startswith("Choose one of: ")


def test_the_command_reads_the_same_history(ann: User, site: Site) -> None:
    def printed(*words: str) -> str:
        out = io.StringIO()
        call_command("workflow_runs", "--user=ann", *words, stdout=OutputWrapper(out))
        return out.getvalue()

    assert printed() == "No run matches.\n"
    done, failed = noted(ann, "milk", origin=Origin.COMMAND), start_run(shop.fail, ann, {})
    site.works()
    lines = printed().splitlines()
    assert lines[0].startswith(f"{failed.pk}  ")
    assert lines[0].endswith("failed  site  /shop.fail")
    assert lines[1] == "    ValueError: The shop is closed."
    assert lines[2].endswith("completed  command  /shop.note text=milk")
    assert [printed(f"--started-by={how}").split()[0] for how in ("command", "site")] == [str(done.pk), str(failed.pk)]
    assert printed("--search=klim", "--workflow=shop.note", "--state=completed").startswith(f"{done.pk} ")
    assert printed("--starred") == "No run matches.\n"
    assert len(printed("--most=1").splitlines()) == 2
    with pytest.raises(CommandError, match="There is no user 'nobody'"):
        call_command("workflow_runs", "--user=nobody")


def test_no_workflow_can_be_called_as_the_history(ann: User) -> None:
    with pytest.raises(RegistryError, match="that is the address of something else"):
        workflow("runs")(note.function)


def test_a_filter_that_is_empty_asks_for_all(ann: User) -> None:
    run = noted(ann, "milk")
    assert list(runs_of(ann, RunFilter())) == list(runs_of(ann, RunFilter(search="   "))) == [run]


@pytest.mark.postgres
@pytest.mark.parametrize("odd", ["\x00", "shop.note\x00", "shop note"])
def test_what_can_be_no_name_of_a_workflow_finds_nothing(odd: str, client: Client, ann: User) -> None:
    """PostgreSQL takes no NUL."""
    noted(ann, "Hello.")
    assert listed(client, workflow=odd) == []
    assert client.get("/api/workflows/runs/", {"workflow": odd}).json()["count"] == 0
    assert client.get(RUNS, {"q": odd, "state": odd, "started_by": odd}).status_code == 200
