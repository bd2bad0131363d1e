"""An app's own kind of output: what the model, the page and a redaction make of it (S5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.engine.interfaces.provider import Answer
from agents.engine.outputs.kinds import Output
from agents.engine.outputs.registry import register_output, unregister_output
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool
from conversations.erasure.steps import redact
from conversations.models import Output as Row
from conversations.models import Prompt, Step
from conversations.verification.stored import verify
from tests.conversations.recorded import Site
from tests.engine import cast
from tests.engine.cast import Name
from tests.engine.support import ScriptedProvider, call, results_in, says

pytestmark = pytest.mark.django_db(transaction=True)

TEMPLATE = '<p class="notice">Receipt {{ block.entry.number }} for {{ block.entry.buyer }}</p>'
CANNOT = "This page cannot display output of the kind “receipt”."


class Receipt(Output):
    number: str
    buyer: str
    pieces: int = 0


def words(receipt: Receipt) -> str:
    return f"[receipt {receipt.number}] {receipt.pieces} pieces for {receipt.buyer}"


def ordering(world: cast.World) -> list[Tool]:
    @tool("stock.order", risk=Risk.WRITE, approval=False)
    async def order(call: ToolCall[Name]) -> str:
        """Order something."""
        call.emit("receipt", {"number": "N-7", "buyer": "Mrs Rossi", "pieces": 3})
        return f"ordered {call.input.name}"

    return [*world.tools(), order]


@pytest.fixture(autouse=True)
def templates(settings: Any, tmp_path: Path) -> None:
    """A folder with the app's template, as in an installed app."""
    (tmp_path / "stock").mkdir()
    (tmp_path / "stock" / "receipt.html").write_text(TEMPLATE)
    first = settings.TEMPLATES[0]
    settings.TEMPLATES = [{**first, "DIRS": [*first["DIRS"], tmp_path]}]


@pytest.fixture
def receipts() -> Iterator[Callable[..., None]]:
    """Registers the kind for one test, or a different version of it."""
    registered = False

    def register(**how: Any) -> None:
        nonlocal registered
        if registered:
            unregister_output("receipt")
        register_output("receipt", Receipt, **how)
        registered = True

    register()
    yield register
    unregister_output("receipt")


class Turns:
    """Consecutive turns of one conversation, with a model that follows one script."""

    def __init__(self, site: Site, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site, self.owner, self.monkeypatch = site, owner, monkeypatch
        self.prompts: list[Prompt] = []

    def run(self, *script: Answer) -> list[list[str]]:
        """Return a prompt for each answer without calls, and the results in each question to the model."""
        provider = ScriptedProvider(script)
        registry, _ = cast.site(provider, ordering(self.site.world))
        for _ in range(sum(not answer.calls for answer in script)):
            conversation = self.prompts[0].conversation if self.prompts else None
            prompt = self.site.starts(self.owner, conversation=conversation)
            self.monkeypatch.setattr("agents.registry.policies", lambda: registry)
            self.site.works()
            self.prompts.append(prompt)
        return [results_in(request) for request in provider.asked]

    @property
    def page(self) -> str:
        """Return the conversation's page, as its owner sees it."""
        client = Client()
        client.force_login(self.owner)
        return client.get(f"/c/{self.prompts[0].conversation_id}/").text

    def redact(self) -> dict[str, Any]:
        """Redact the receipt. Returns what is left of its step."""
        step = Step.objects.get(type="receipt")
        redact(self.prompts[0].conversation, [step.seq], self.owner, "A name.")
        left: dict[str, Any] = Step.objects.get(pk=step.pk).content
        return left

    @property
    def problems(self) -> list[str]:
        """Return what verification says about the ledger."""
        return [str(problem) for problem in verify(self.prompts[0].conversation_id).problems]


@pytest.fixture
def turns(site: Site, ann: User, monkeypatch: pytest.MonkeyPatch) -> Turns:
    return Turns(site, ann, monkeypatch)


ORDER = says("", call("stock.order", name="paper"), call("report.write", name="q"))
ORDERED = "ordered paper\n\n[receipt N-7] 3 pieces for Mrs Rossi"
WROTE = "wrote q\n\n[file a.txt] S"


def test_the_model_is_told_in_the_next_round_and_in_later_turns(turns: Turns, receipts: Callable[..., None]) -> None:
    """With the result of the call that made it, so that no call is separated from its result (R21)."""
    receipts(told=words)
    _, next_round, next_turn = turns.run(ORDER, says("Done."), says("Again."))
    assert next_round == [ORDERED, WROTE]
    assert next_turn == [ORDERED, WROTE]


@pytest.mark.usefixtures("receipts")
def test_without_words_for_it_the_model_is_told_nothing(turns: Turns) -> None:
    _, next_round, next_turn = turns.run(ORDER, says("Done."), says("Again."))
    assert next_round == next_turn == ["ordered paper", WROTE]


def test_its_template_shows_it_on_the_page(turns: Turns, receipts: Callable[..., None]) -> None:
    """After the call that made it. The named template is used: there is none with the name of the kind."""
    receipts(template="stock/receipt.html")
    turns.run(ORDER, says("Done."))
    assert "Receipt N-7 for Mrs Rossi" in turns.page
    assert CANNOT not in turns.page


@pytest.mark.parametrize("template", ["", "stock/nowhere.html"])
def test_without_a_template_the_page_says_that_it_cannot_show_it(
    turns: Turns, receipts: Callable[..., None], template: str
) -> None:
    receipts(template=template)
    turns.run(ORDER, says("Done."))
    assert CANNOT in turns.page
    assert "Mrs Rossi" not in turns.page


def test_a_redaction_keeps_the_fields_that_stay(turns: Turns, receipts: Callable[..., None]) -> None:
    """On the page and in what the model is told; the ledger verifies."""
    receipts(told=words, template="stock/receipt.html", stays=["number", "pieces"])
    turns.run(ORDER, says("Done."))
    left = turns.redact()
    assert left == {"number": "N-7", "buyer": "[redacted]", "pieces": 3, "redacted": True}
    assert Row.objects.get(type="receipt").content["buyer"] == "[redacted]"
    assert "Receipt N-7 for [redacted]" in turns.page
    *_, later = turns.run(ORDER, says("Done."), says("Again."))
    assert "[receipt N-7] 3 pieces for [redacted]" in later[0]
    assert turns.problems == []


@pytest.mark.usefixtures("receipts")
def test_a_redaction_keeps_nothing_that_was_not_named(turns: Turns) -> None:
    turns.run(ORDER, says("Done."))
    assert turns.redact() == {"number": "[redacted]", "buyer": "[redacted]", "pieces": 0, "redacted": True}
    assert turns.problems == []


def test_a_redacted_step_verifies_where_its_app_says_something_else_by_now(
    turns: Turns, receipts: Callable[..., None]
) -> None:
    """The app decided then what stays. If it says otherwise now, that is not a problem of the ledger."""
    receipts(stays=["number"])
    turns.run(ORDER, says("Done."))
    turns.redact()
    receipts(stays=["pieces"])
    assert turns.problems == []
