"""The limit of a turn ends a tool that is running, whatever time of its own the tool has left (S54)."""

from __future__ import annotations

import asyncio
import math
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.engine import Action, Context, Limits, Step
from agents.engine.closing import HAD_BEGUN
from agents.engine.execution.effect import as_policy
from agents.engine.runtime import run as runtime
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool
from agents.engine.view import View
from tests.engine.cast import Name, site
from tests.engine.support import Site, call, carry_on, end_of, open_gates, says

LIMIT = "300 seconds of running, the limit of the turn."
STOPPED, LEFT = f"Stopped after {LIMIT}", f"Not waited for any longer than {LIMIT}"
GOES_ON = "It may still be running."


@dataclass
class Late:
    """A tool that runs until it is released. From its start on, the turn has almost no time left."""

    kind: str
    services: Site = field(default_factory=lambda: Site(spent=299.99))
    released: threading.Event = field(default_factory=threading.Event)

    def tool(self, **declared: Any) -> Tool:
        async def ends(call: ToolCall[Name]) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                self.services.spent = 300.0

        async def goes_on(call: ToolCall[Name]) -> None:
            self.services.spent = 300.0
            while not self.released.is_set():
                try:
                    await asyncio.to_thread(self.released.wait, 60)
                except asyncio.CancelledError:
                    continue

        def blocks(call: ToolCall[Name]) -> None:
            self.services.spent = 300.0
            self.released.wait(60)

        function = {"ends": ends, "goes_on": goes_on, "blocks": blocks}[self.kind]
        return tool("late", approval=False, **declared)(function)


@pytest.mark.parametrize(
    ("kind", "declared", "told"),
    [
        ("ends", {"risk": Risk.WRITE}, f"{STOPPED} {HAD_BEGUN}"),
        ("ends", {"risk": Risk.READ}, STOPPED),
        ("ends", {"risk": Risk.WRITE, "idempotent": True, "time_limit": 500.0}, f"{STOPPED} {HAD_BEGUN}"),
        ("goes_on", {"risk": Risk.WRITE}, f"{LEFT} {HAD_BEGUN} {GOES_ON}"),
        ("goes_on", {"risk": Risk.READ}, f"{LEFT} {GOES_ON}"),
        ("blocks", {"risk": Risk.HIGH}, f"{LEFT} {HAD_BEGUN} {GOES_ON}"),
    ],
)
async def test_the_turn_ends_what_is_running(
    monkeypatch: pytest.MonkeyPatch, kind: str, declared: dict[str, Any], told: str
) -> None:
    """Its result says what may have happened, nobody is asked about it, and the turn fails."""
    monkeypatch.setattr(runtime, "GRACE_SECONDS", 0.01)
    late = Late(kind)
    registry, provider = site([says("", call("late", name="x")), says("Done.")], [late.tool(**declared)])
    try:
        ledger = await carry_on(registry, services=late.services)
    finally:
        late.released.set()
    result, end = View(ledger).result("1/0"), end_of(ledger)
    assert result
    assert (result.payload["code"], result.payload["message"]) == ("timeout", told)
    assert open_gates(ledger) == []
    assert end
    assert (end["state"], end["stop_reason"]) == ("failed", "timeout")
    assert len(provider.asked) == 1


async def test_a_call_cut_off_by_a_crash_is_not_asked_about_after_the_limit() -> None:
    """Its owner could not let it run again: the turn is over (S54)."""
    late = Late("ends")
    registry, _ = site([says("", call("late", name="x")), says("Done.")], [late.tool(risk=Risk.WRITE)])
    ledger = await carry_on(registry, services=late.services)
    began = next(n for n, step in enumerate(ledger) if (step.path, step.type) == ("1/0", "action_start"))
    ledger = await carry_on(registry, ledger[: began + 1], services=late.services)
    result = View(ledger).result("1/0")
    assert result
    assert result.payload["code"] == "timeout"
    assert HAD_BEGUN in result.payload["message"]
    assert open_gates(ledger) == []


@pytest.mark.parametrize(("seconds", "code"), [(math.inf, None), (300.0, "timeout")])
async def test_a_program_has_the_limit_that_it_declares(seconds: float, code: str | None) -> None:
    """Without one, its tools and its questions to the model have only limits of their own (S54)."""

    @tool("wait", risk=Risk.READ)
    async def wait(call: ToolCall[Name]) -> str:
        """Let the time of the turn pass."""
        services.spent = 400.0
        await asyncio.sleep(0.05 if code is None else 60)
        return "waited"

    services = Site(spent=299.99)
    registry, _ = site([says("Done.")])
    registry.register("wait")(as_policy(wait))

    @registry.register("flow", seconds=seconds)
    async def flow(action: Action, ctx: Context) -> list[Step]:
        waited = (await ctx.call(Action("wait", {"name": "x"})))[-1]
        asked = (await ctx.call(Action("model", {"system": "Say when you are done."})))[-1]
        return [Step("flow", "action_result", {"codes": [waited.payload.get("code"), asked.payload.get("code")]})]

    ledger = await carry_on(registry, policy="flow", payload={}, services=services, limits=Limits(seconds=10.0))
    assert ledger[-1].value == {"codes": [code, code]}
