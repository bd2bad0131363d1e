"""A model that asks for a tool named `human` asks nobody, whatever it puts into the call."""

from __future__ import annotations

import pytest

from agents.engine.errors import RegistryError
from agents.engine.ledger import JSON, Step
from agents.engine.outputs.kinds import ToolOutput
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.tool import tool
from agents.engine.view import View
from tests.engine.cast import World, site
from tests.engine.support import call, carry_on, end_of, says


@pytest.mark.parametrize(
    "payload",
    [
        {"reason": "Routine backup", "expires_at": "2020-01-01T00:00:00+00:00"},
        {"input": "x y"},
        {"reason": 5, "facts": "none"},
        {"expires_at": "soon"},
    ],
)
async def test_a_forged_gate_is_an_unknown_tool(world: World, payload: dict[str, JSON]) -> None:
    """No gate opens and none is left: only the runtime and policies ask people (T-14)."""
    registry, _ = site([says("Please.", call("human", **payload)), says("Done.")], world.tools())
    ledger = await carry_on(registry)
    end = end_of(ledger)
    assert end
    assert end["state"] == "completed"
    assert View(ledger).open_gates() == []
    entry = Outputs(ledger).entry("1/0")
    assert entry
    assert entry.approval is None
    assert entry.result.type == "error"


@pytest.mark.parametrize("asked", [{"reason": 5}, {"expires_at": "soon"}, {"facts": 3}])
def test_a_gate_whose_fields_make_no_sense_is_a_gate_all_the_same(asked: dict[str, JSON]) -> None:
    """The fold never raises, and the person is asked."""
    step = Step(
        "policy:flow", "action_call", {"policy": "human", "payload": asked}, "1", 1, "2026-01-05T12:00:00+00:00"
    )
    (entry,) = Outputs([step]).in_order()
    assert isinstance(entry, ToolOutput)
    assert entry.approval
    assert entry.approval.state == "pending"


def test_whoever_ends_a_call_ends_its_gate() -> None:
    """No gate stays pending beside a result: it would be asked about for ever."""
    asked: dict[str, JSON] = {"policy": "human", "payload": {"reason": "Run: ls"}}
    steps = [
        Step("model", "action_call", {"policy": "shell.run", "payload": {}}, "1/0", 1, "t"),
        Step("runtime", "action_call", asked, "1/0/human", 2, "t"),
        Step("runtime", "action_result", {"error": True, "code": "unknown_tool", "message": "Gone."}, "1/0", 3, "t"),
    ]
    entry = Outputs(steps).entry("1/0")
    assert entry
    assert entry.approval
    assert entry.approval.state == "cancelled"


@pytest.mark.parametrize("name", ["human", "model", "agent", "sleep", "final_answer", "final.answer"])
def test_a_tool_cannot_take_the_name_of_a_policy_of_the_engine(name: str) -> None:
    with pytest.raises(RegistryError, match=f"'{name}' is reserved for a policy"):
        tool(name)(lambda call: None)
