"""A plugin's tool waits for approval while its app is taken away: the record itself has what people need to decide."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from pydantic import BaseModel, Field

from agents import discovery
from agents.engine.decisions import Decision
from agents.engine.ledger import canonical
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.tool import Risk, ToolCall, tool
from conversations.approvals.decisions import DecisionRefused, decide
from conversations.backup.after_restore import make_safe
from conversations.display.cards import cards
from conversations.display.decision_form import decide_posted, edit_form
from conversations.display.gate import Card
from conversations.display.shapes.outputs import Approval
from conversations.ledger.offered import offered_tool
from conversations.models import Output, Prompt, State
from conversations.models import Step as Row
from conversations.prompts.start import start_conversation, start_prompt
from conversations.verification.stored import verify
from conversations.worker.drafts import Drafts
from conversations.worker.runner import Runner
from tests.conversations.recorded import Site, in_this_thread, meddle, pending, taken
from tests.engine.cast import site as engine_site
from tests.engine.support import ScriptedProvider, call, results_in, says

pytestmark = pytest.mark.django_db
ran: list[str] = []


class Deployment(BaseModel):
    command: str = Field(description="What is run on the server.")
    host: str = "web-1"


@tool(
    "deploy.run",
    risk=Risk.HIGH,
    title="Deploy to a server",
    facts=lambda call: ["On the live site."],
    undoable="The version before can be deployed again.",
    offered=False,
)
def deploy(call: ToolCall[Deployment]) -> str:
    """Deploy."""
    ran.append(call.input.command)
    return "deployed"


@tool("deploy.push", risk=Risk.WRITE, approval=False, offered=False)
def push(call: ToolCall) -> str:
    """Push what was built."""
    ran.append("push")
    return "pushed"


@tool("deploy.log", risk=Risk.READ, offered=False)
def log(call: ToolCall) -> str:
    """Read the log of the last deployment."""
    ran.append("log")
    return "all well"


class Deploying(Plugin):
    """Offers tools that discovery does not know, as a server's are."""

    name = "deploying"

    async def prepare(self, round: Round) -> None:
        round.tools += [deploy, push, log]


SCRIPT = [says("I deploy.", call("deploy.run", command="make deploy")), says("Done.")]


@pytest.fixture(autouse=True)
def _clean() -> None:
    ran.clear()
    assert discovery.installed_tool("deploy.run") is None


def has(site: Site, *plugins: Plugin, script: Any = SCRIPT) -> ScriptedProvider:
    """The site has these plugins from now on."""
    registry, provider = engine_site(script, (), plugins)
    site.monkeypatch.setattr("agents.registry.policies", lambda: registry)
    return provider


@pytest.fixture
def waiting(ann: User, site: Site) -> Prompt:
    """A turn that waits for the approval of the plugin's tool; then its app is taken away."""
    has(site, Deploying())
    prompt = start_prompt(start_conversation(ann), ann, "Deploy it.")
    site.works()
    has(site)
    return prompt


def card_of(prompt: Prompt, reader: User) -> Card:
    (row,) = pending(prompt)
    return cards([row], reader)[0]


def test_its_card_is_whole(waiting: Prompt, ann: User, client: Client) -> None:
    card = card_of(waiting, ann)
    assert (card.title, card.call.command, card.risk, card.facts) == (
        "Deploy to a server",
        "make deploy",
        "High risk",
        ["On the live site."],
    )
    assert card.call.fields == []
    assert (card.approve_label, card.icon, card.reason) == ("Approve and run", "term", "")
    client.force_login(ann)
    page = client.get(waiting.conversation.get_absolute_url()).text
    assert "Deploy to a server" in page
    assert "Approve and run" in page
    assert "The version before can be deployed again." in page
    shown = Approval.of(pending(waiting)[0]).approval
    assert (shown.title, shown.preview, shown.risk) == ("Deploy to a server", "command", "high")
    assert shown.undoable == "The version before can be deployed again."


def test_its_edit_form_has_the_fields_that_the_model_saw(waiting: Prompt, ann: User) -> None:
    form = edit_form(card_of(waiting, ann))
    assert form
    assert [(field.name, field.text, field.hint, field.code) for field in form.fields] == [
        ("command", "make deploy", "What is run on the server.", True),
        ("host", "", "", False),
    ]
    with pytest.raises(DecisionRefused) as caught:
        decide(pending(waiting)[0].pk, ann, "approve", digest=pending(waiting)[0].digest, via="api", input={"host": 5})
    assert caught.value.code == "invalid_input"


@pytest.mark.parametrize(
    ("posted", "told"),
    [
        ({"decision": "approve"}, "(tool_changed): The tool changed before this call ran, so nothing was done."),
        (
            {"decision": "approve", "edited": "1", "text-0": "make deploy", "text-1": "web-2"},
            "(tool_changed): The tool does not accept the input as a person changed it, so nothing ran.",
        ),
        ({"decision": "reject", "reason": "Not on Friday."}, "(rejected): Not on Friday."),
    ],
    ids=["approved", "edited", "rejected"],
)
def test_the_decision_is_taken_nothing_runs_and_the_model_is_told(
    waiting: Prompt, ann: User, site: Site, posted: dict[str, str], told: str
) -> None:
    """What a person decided stands in the record; the turn goes on without the tool, and says what became of it."""
    provider = has(site)
    card = card_of(waiting, ann)
    form = edit_form(card)
    assert form
    named = {field.name: field.key for field in form.fields}
    renamed = {"text-0": named["command"], "text-1": named["host"]}
    said = {renamed.get(name, name): value for name, value in posted.items()} | {"digest": card.row.digest}
    request = RequestFactory().post("/", said)
    request.user = ann
    after = decide_posted(card, request, "page")  # type: ignore[arg-type]
    assert after.gate == ("rejected" if posted["decision"] == Decision.REJECT else "approved")
    site.works()
    waiting.refresh_from_db()
    assert (waiting.state, ran) == (State.COMPLETED, [])
    assert f"Error {told}" in results_in(provider.asked[0])[0]
    assert not Row.objects.filter(prompt=waiting, path="1/0", type="action_start").exists()
    done = cards([Output.objects.get(prompt=waiting, path="1/0")], ann)[0]
    assert done.title == "Deploy to a server", "also once it is decided"
    assert verify(waiting.conversation_id).problems == []


def test_it_runs_if_its_app_comes_back(waiting: Prompt, ann: User, site: Site) -> None:
    has(site, Deploying())
    site.approves(waiting, ann)
    site.works()
    assert ran == ["make deploy"]
    assert verify(waiting.conversation_id).problems == []


def test_a_gate_that_has_no_title_asks_the_installed_tool(waiting: Prompt, ann: User, site: Site) -> None:
    """As ledgers from before: a tool that is installed has its title, any other is shown by its name."""
    row = Output.objects.get(prompt=waiting, path="1/0")
    gate = {name: value for name, value in row.content["approval"].items() if name not in ("title", "preview")}
    meddle(
        "UPDATE conversations_output SET data = %s WHERE id = %s", [canonical(row.content | {"approval": gate}), row.pk]
    )
    assert card_of(waiting, ann).title == "deploy.run"
    found = discovery.Found((deploy,), ())
    site.monkeypatch.setattr(discovery, "installed", lambda: found)
    assert card_of(waiting, ann).title == "Deploy to a server"


def test_after_a_restore_the_record_says_what_may_run_again(ann: User, site: Site) -> None:
    """Of calls that had not begun: one that may safely run twice runs, one that always asks asks, any other ends."""
    batch = says("All of it.", call("deploy.log"), call("deploy.push"), call("deploy.run", command="make"))
    has(site, Deploying(), script=[batch, says("Done.")])
    prompt = start_prompt(start_conversation(ann), ann, "Deploy it.")
    frozen = Runner(taken(prompt), "worker:test", in_this_thread, Drafts(in_this_thread), lambda: False)
    async_to_sync(frozen)()  # the answer is on record, and its first call must not begin
    assert not Row.objects.filter(prompt=prompt, path__startswith="1/", type="action_start").exists()
    has(site)
    assert make_safe("noon").calls == 1
    provider = has(site, Deploying(), script=[batch, says("Done.")])
    site.works()
    assert (ran, [gate.path for gate in pending(prompt)]) == (["log"], ["1/2"])
    site.approves(prompt, ann)
    site.works()
    assert ran == ["log", "make"]
    seen, ended, done = results_in(provider.asked[-1])
    assert (seen, done) == ("all well", "deployed")
    assert ended.startswith("Error (interrupted): The site was restored from a backup: nobody knows whether it ran.")
    assert verify(prompt.conversation_id).problems == []


def test_the_snapshot_has_what_is_declared_of_a_tool(waiting: Prompt) -> None:
    found = offered_tool(waiting.conversation_id, waiting.pk, "1/0", "deploy.run")
    assert found
    declared = (found.title, found.preview, found.risk, found.idempotent, found.always_asks)
    assert declared == ("Deploy to a server", "command", "high", False, True)
    assert offered_tool(waiting.conversation_id, waiting.pk, "1/0", "deploy.gone") is None
    assert offered_tool(waiting.conversation_id, waiting.pk, "9/0", "deploy.run") is None
