"""Edited calls: what runs, what the model reads, and that an approval counts once, whatever else happens."""

import pytest

from agents.engine.agent.projection import CallIds, turn_messages
from agents.engine.interfaces.messages import ResultMessage
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import JSON, Ledger
from agents.engine.limits import Limits
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.tool import Tool
from agents.engine.view import View
from tests.engine.cast import World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.support import call, carry_on, decide, digest_of, open_gates, results_in, says

LS = call("shell.run", command="ls")
ONE = [says("I will.", LS), says("Done.")]
EDITED: dict[str, JSON] = {"command": "ls -l"}
NOTE = "[A person changed the input of this call.]"


def shell_of(tools: list[Tool]) -> Tool:
    return next(tool for tool in tools if tool.name == "shell.run")


def edit(ledger: Ledger, tool: Tool, path: str = "1/0/human", input: dict[str, JSON] = EDITED) -> Ledger:
    """A person approves the call with this input instead of the model's."""
    return decide(ledger, path, input=input, digest=digest_of(tool, input))


async def test_an_edit_approves_one_call_and_the_same_call_asks_anew(world: World) -> None:
    """T-06: neither what was proposed nor what was approved in its place is approved the next time."""
    tools = world.tools()
    registry, _ = site([ONE[0], says("Again.", LS, call("shell.run", command="ls -l")), says("Done.")], tools)
    ledger = await carry_on(registry, edit(await carry_on(registry), shell_of(tools)))
    assert open_gates(ledger) == ["2/0/human", "2/1/human"]
    assert world.done == [("shell.run", "ls -l")]


async def test_the_model_reads_that_a_person_changed_it_now_and_in_later_turns(world: World) -> None:
    """With what came of it, be it an error, and with the arguments that ran."""
    world.at["shell.run"] = lambda call: 1 / 0
    tools = world.tools()
    registry, provider = site(ONE, tools)
    ledger = await carry_on(registry, edit(await carry_on(registry), shell_of(tools)))
    error = "Error (exception): ZeroDivisionError: division by zero"
    assert results_in(provider.asked[1]) == [f"{NOTE}\n\n{error}"]
    later = turn_messages(PastTurn(1, "Go.", tuple(Outputs(ledger).in_order())), CallIds(), Limits())
    asked = next(message for message in later if getattr(message, "calls", None))
    assert asked.calls[0].arguments == EDITED  # type: ignore[union-attr]
    assert [message.texts for message in later if isinstance(message, ResultMessage)] == [(NOTE, error)]


async def test_an_edited_call_that_was_interrupted_is_asked_about_as_it_was_edited(world: World) -> None:
    """The card shows what began; run again, it is the edited call that runs, as attempt 2."""
    tools = world.tools()
    registry, _ = site(ONE, tools)
    approved = edit(await carry_on(registry), shell_of(tools))
    journal = CrashingJournal(approved, CrashPoint(2))
    with pytest.raises(Crash):
        await carry_on(registry, approved, journal=journal)
    waiting = await carry_on(registry, journal.ledger)
    assert open_gates(waiting) == ["1/0/card1"]
    card = View(waiting).call("1/0/card1")
    assert card
    assert card.payload["payload"]["input"] == EDITED
    ledger = await carry_on(registry, decide(waiting, "1/0/card1", "run_again"))
    assert world.times["shell.run", "ls -l"] == 2
    entry = Outputs(ledger).entry("1/0")
    assert entry
    assert (entry.input, entry.proposed) == (EDITED, {"command": "ls"})
