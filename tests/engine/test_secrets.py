"""The site's own secrets: hidden in every form, and once: what is shown is what is recorded and what runs (C20)."""

from __future__ import annotations

import json
from urllib.parse import quote, quote_plus

import pytest

from agents.engine import Action, Context, Step
from agents.engine.execution.effect import as_policy
from agents.engine.execution.gates import shown_digest
from agents.engine.ledger import EMPTY
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.secrets import HIDDEN, hide, hide_in, keep_secret, partial_secret_length
from agents.engine.view import View
from tests.engine.cast import World, site
from tests.engine.execution.test_changes import Notes, asks, gate_of
from tests.engine.support import carry_on, decide, open_gates

SECRET = 'canary/47 "11" é&more'


@pytest.fixture(autouse=True)
def _one_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.engine.secrets._known", [])
    keep_secret([SECRET])


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps({"key": SECRET}),
        json.dumps({"key": SECRET}, ensure_ascii=False),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
    ],
)
def test_a_secret_is_hidden_in_every_form(form: str) -> None:
    """In a JSON text and in an address it is written in another way."""
    told = hide(f"It is {form}.")
    assert HIDDEN in told
    assert "47" not in told
    assert hide_in({form: [form, 1]}) == {hide(form): [hide(form), 1]}


def test_the_beginning_of_a_secret_is_known_at_the_end_of_a_text() -> None:
    assert [partial_secret_length(text) for text in ("", "none", "see c", f"see {SECRET[:-1]}", f"{SECRET[:-1]}.")] == [
        0,
        0,
        1,
        len(SECRET) - 1,
        0,
    ]
    keep_secret([])
    assert partial_secret_length("see c") == 0


async def test_a_change_is_hidden_before_it_is_hashed() -> None:
    """The same text is shown, recorded and hashed; the tool itself still writes the secret that was there."""
    notes = Notes(a=f"key = {SECRET}\nold")
    registry, _ = site(asks({"name": "a", "text": "new"}), [notes.tool()])
    waiting = await carry_on(registry)
    asked = gate_of(waiting)
    assert asked["change"] == {"path": "a", "before": f"key = {HIDDEN}\nold", "after": "new"}
    named = (asked["tool"], asked["input"], asked["schema"], asked["facts"], asked["change"])
    assert asked["digest"] == shown_digest(*named)
    await carry_on(registry, decide(waiting, "1/0/human"))
    assert notes["a"] == "new"
    (change,) = notes.done
    assert change
    assert change.before == f"key = {SECRET}\nold"


async def test_what_a_workflow_passes_runs_as_it_is_shown(world: World) -> None:
    """It is recorded, approved and run without the secret; continuing does not count as another payload."""
    registry = PolicyRegistry()
    for tool in world.tools():
        registry.register(tool.name)(as_policy(tool))

    @registry.register("flow")
    async def flow(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("shell.run", {"command": f"echo {SECRET}"}))

    waiting = await carry_on(registry, EMPTY, policy="flow", payload={})
    assert open_gates(waiting) == ["1/human"]
    ledger = await carry_on(registry, decide(waiting, "1/human"), policy="flow", payload={})
    assert world.done == [("shell.run", f"echo {HIDDEN}")]
    assert View(ledger).result("1")
    assert not View(ledger).at("1", "note")
