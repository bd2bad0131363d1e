"""`manage.py run_workflow`: what it starts, what it prints, and how it ends."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.core.management.base import OutputWrapper
from pydantic import BaseModel, SecretStr

from conversations.approvals.decisions import decide
from conversations.models import Output, Prompt, State
from conversations.prompts.killswitch import turn_on
from conversations.prompts.start import cancel_prompt, start_conversation
from tests.agentsite.processes import run, variables
from tests.conversations.recorded import Site, at_once
from tests.workflows import shop
from workflows import Flow, workflow
from workflows.management.commands import run_workflow
from workflows.models import WorkflowSetting
from workflows.running import start_run

pytestmark = pytest.mark.django_db


@workflow("shop.ask", title="Ask")
async def ask(flow: Flow[Any]) -> str:
    """Asks for a color."""
    return f"It is {await flow.ask('Which color?', choices=['red', 'blue'])}."


@pytest.fixture(autouse=True)
def _installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Any:
    with shop.installed(site, monkeypatch, workflows=(*shop.ALL, ask)) as provider:
        yield provider


class Ended:
    """A command that ended: what it printed and its exit code, with what it said of an error."""

    def __init__(self, *words: str, user: str = "ann") -> None:
        out = io.StringIO()
        self.code, self.error = 0, ""
        try:
            call_command("run_workflow", *words, f"--user={user}", stdout=OutputWrapper(out))
        except CommandError as error:
            self.code, self.error = error.returncode, str(error)
        except SystemExit as error:
            self.code = int(str(error.code))
        self.printed = out.getvalue()


def inputs() -> list[str | None]:
    return [prompt.input for prompt in Prompt.objects.order_by("pk")]


def test_it_prints_the_prompt_and_its_page_and_that_it_is_open(ann: User, settings: Any) -> None:
    settings.AGENTSITE_URL = "https://site.example"
    ended = Ended("shop.order", "item=paper")
    prompt = Prompt.objects.get()
    page = f"https://site.example/c/{prompt.conversation_id}/#t-{prompt.pk}"
    assert (ended.code, ended.printed) == (2, f"Started prompt {prompt.pk}: {page}\n")
    assert (prompt.asked_by, prompt.origin, prompt.conversation.kind) == (ann, "command", "run")


def test_the_input_is_of_words_and_of_a_file(ann: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "input.json"
    file.write_text(json.dumps({"item": "pens", "pieces": 5}))
    Ended("shop.order", 'item=it\'s a "quoted" =\nword', "pieces=2")
    Ended("shop.order", "some", "paper", "pieces:=3")
    Ended("shop.order", f"--input={file}", "pieces=2")
    monkeypatch.setattr("sys.stdin", io.StringIO('{"item": "ink"}'))
    Ended("shop.order", "--input", "-")
    assert inputs() == [
        """/shop.order item='it'"'"'s a "quoted" =\nword' pieces=2""",
        "/shop.order item='some paper' pieces=3",
        "/shop.order item=pens pieces=2",
        "/shop.order item=ink",
    ]


def test_words_may_stand_behind_options(ann: User) -> None:
    chat = start_conversation(ann, "Orders")
    Ended("shop.order", "--conversation", str(chat.pk), "item=paper", "--wait", "nonsense=1")
    Ended("shop.order", "--conversation", str(chat.pk), "item=paper")
    assert [prompt.conversation_id for prompt in Prompt.objects.all()] == [chat.pk]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["shop.order", "item=a", "pieces=101"],
            "  item: Enter at least 2 characters.\n  pieces: Enter a number from 1 to 100.",
        ),
        (["shop.order"], "The input is not accepted:\n  item: Field required."),
        (["shop.order", "item=paper", "pieces=many"], "  pieces: Enter a whole number."),
        (["shop.order", "itme=paper"], "  itme: There is no such field. There are: item, pieces."),
        (["shop.order", "item=paper", "ink"], "  input: No field takes the text 'ink': write field=value."),
        (["no.such"], "There is no workflow 'no.such'. `manage.py agents` lists what there is."),
        (["shell.run", "command=ls"], "There is no workflow 'shell.run'."),
        (["shop.order", "--input=/no/such"], "/no/such cannot be read: No such file or directory."),
        (["shop.order", "--input=-"], "What stdin has is no JSON object"),
        (["shop.order", "item=paper", "--conversation=x"], "'x' is not a conversation id"),
        (["shop.order", "item=paper", "--conversation=99"], "ann has no conversation 99."),
        (["shop.fail"], "ann may not run shop.fail: An administrator has turned this workflow off."),
    ],
)
@pytest.mark.parametrize("wait", [[], ["--wait"]])
def test_what_is_refused_says_why_and_starts_nothing(
    ann: User, words: list[str], told: str, wait: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    WorkflowSetting.objects.create(name="shop.fail", enabled=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("[1]"))
    ended = Ended(*words, *wait)
    assert (ended.code, ended.printed) == (3, "")
    assert told in ended.error
    assert not Prompt.objects.exists()


def test_nobody_starts_one_for_nobody_or_in_anothers_conversation(ann: User, bob: User) -> None:
    chat = start_conversation(bob)
    assert Ended("shop.order", "item=paper", user="nobody").code == 3
    assert Ended("shop.order", "item=paper", f"--conversation={chat.pk}").error == f"ann has no conversation {chat.pk}."
    assert not Prompt.objects.exists()


def test_what_cannot_start_now_is_refused(ann: User) -> None:
    chat = start_conversation(ann)
    start_run(shop.order, ann, {"item": "paper"}, conversation=chat)
    taken = Ended("shop.order", "item=paper", f"--conversation={chat.pk}")
    assert (taken.code, "running or waiting" in taken.error) == (3, True)
    turn_on(ann, "A test.")
    assert Ended("shop.order", "item=paper").code == 3
    assert Prompt.objects.count() == 1


# Waiting


def waited(*words: str, meanwhile: Callable[[], object]) -> Ended:
    """Run the command with --wait, and something else at the same time, once the run is there."""

    def others() -> None:
        shop.until(Prompt.objects.exists)
        meanwhile()

    ended, raised = at_once(lambda: Ended(*words, "--wait"), others)
    assert raised is None
    assert isinstance(ended, Ended)
    return ended


@pytest.mark.django_db(transaction=True)
def test_it_says_once_what_it_waits_for_and_prints_the_result(ann: User, site: Site) -> None:
    def decide_all() -> None:
        site.works()
        site.approves(Prompt.objects.get(), ann)
        site.works()

    ended = waited("shop.order", "item=paper", meanwhile=decide_all)
    assert ended.code == 0
    assert ended.printed.splitlines()[-3:] == ["{", '  "ordered": "paper"', "}"]


@pytest.mark.django_db(transaction=True)
def test_a_question_is_told_until_it_is_answered(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    told = watched(monkeypatch)

    def answer() -> None:
        site.works()
        shop.until(lambda: told)
        gate = Output.objects.pending().get()
        decide(gate.pk, ann, "answer", digest=gate.digest, via="page", answer="blue")
        site.works()

    ended = waited("shop.ask", meanwhile=answer)
    gate = Output.objects.gates().get()
    assert ended.code == 0
    assert ended.printed.splitlines()[1:] == [f"Waits for an answer: Which color? (approval {gate.pk})", "It is blue."]


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The list to which what a command waits for is added, once it has looked at it twice."""
    looks: list[str] = []
    told: list[str] = []
    reasons = run_workflow._reasons

    def look(run: Prompt) -> list[str]:
        found = reasons(run)
        told.extend(found if looks and found else [])
        looks.extend(found)
        return found

    monkeypatch.setattr(run_workflow, "_reasons", look)
    monkeypatch.setattr(run_workflow, "LOOK_SECONDS", 0.02)
    return told


@pytest.mark.django_db(transaction=True)
def test_a_run_that_fails_ends_the_command_with_1(ann: User, site: Site) -> None:
    failed = waited("shop.fail", meanwhile=site.works)
    assert failed.code == 1
    assert failed.error.splitlines()[0].startswith("The run failed (")
    assert failed.error.splitlines()[1] == "ValueError: The shop is closed."


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_stopped_ends_it_with_1(ann: User) -> None:
    stopped = waited("shop.fail", meanwhile=lambda: cancel_prompt(Prompt.objects.get().pk, ann))
    assert (stopped.code, "The run was stopped" in stopped.error) == (1, True)


def test_a_sleep_is_told(ann: User) -> None:
    sleeping = start_run(shop.fail, ann, {})
    sleeping.state, sleeping.wake_at = State.SLEEPING, datetime(2030, 1, 2, 3, tzinfo=UTC)
    assert run_workflow._reasons(sleeping) == ["Sleeps until 2030-01-02T03:00:00+00:00"]


def test_ctrl_c_leaves_the_run_open(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(run: Prompt) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr("workflows.management.commands.run_workflow._reasons", interrupt)
    ended = Ended("shop.fail", "--wait")
    assert (ended.code, ended.error) == (2, "The run continues without you.")
    assert Prompt.objects.get().state == "queued"


def test_the_help_has_the_exit_codes(tmp_path: Path) -> None:
    text = run("manage.py", "run_workflow", "--help", environment=variables(tmp_path)).stdout
    assert "  2  it is still open: so it is always without --wait" in text
    assert "  3  nothing was started" in text


def test_the_list_of_agents_has_the_workflows() -> None:
    out = io.StringIO()
    call_command("agents", stdout=OutputWrapper(out))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert lines[lines.index("Workflows") + 1] == "NAME TITLE OWNER"
    assert "shop.order Order something tests.workflows.shop.order" in lines
    out = io.StringIO()
    call_command("agents", "--json", stdout=OutputWrapper(out))
    found = json.loads(out.getvalue())
    assert {"name": "shop.fail", "title": "Fail", "owner": "tests.workflows.shop.fail"} in found["workflows"]
    assert [each["name"] for each in found["policies"] if "shop" in each["name"]] == []


class Door(BaseModel):
    name: str
    password: SecretStr


@workflow("shop.door", title="Open a door")
async def door(flow: Flow[Door]) -> None:
    """Opens a door."""


def test_a_secret_is_given_in_a_file_and_on_no_command_line(
    ann: User, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop.installed(site, monkeypatch, workflows=(door,)):
        ended = Ended("shop.door", "name=front", "password=open sesame")
        assert (ended.code, Prompt.objects.count()) == (3, 0)
        assert "password is a secret" in ended.error
        assert "sesame" not in ended.error
        monkeypatch.setattr("sys.stdin", io.StringIO('{"password": "open sesame"}'))
        assert Ended("shop.door", "--input", "-", "name=front").code == 2
        assert inputs() == ["/shop.door name=front"]
