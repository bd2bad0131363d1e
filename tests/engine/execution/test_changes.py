"""Changes: what a call would change is shown, is part of what is approved, and is checked again before the start."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from agents.engine.errors import ToolError
from agents.engine.execution.gates import shown_digest
from agents.engine.grants.grant import Asked
from agents.engine.interfaces.provider import Answer
from agents.engine.ledger import JSON, Ledger
from agents.engine.outputs.change import CHANGE_MOST, LINES_MOST, SPELLED_MOST, Change
from agents.engine.outputs.kinds import Approval
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.gatekeeper import AskEverybody, GateVerdict
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool
from agents.engine.view import View
from tests.engine.cast import site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.support import call, carry_on, decide, lines, open_gates, results_in, says, shown_of


class Note(BaseModel):
    """What `note.set` takes."""

    name: str
    text: str


class Notes(dict[str, str]):
    """Notes by name, a tool that sets one, and what was done."""

    def __init__(self, **notes: str) -> None:
        super().__init__(notes)
        self.done: list[Change | None] = []

    def tool(self, **more: Any) -> Tool:
        """`note.set` over these notes."""

        def change(call: ToolCall[Note]) -> Change:
            if "/" in call.input.name:
                raise ToolError(f"{call.input.name!r} is no name.", "bad_name")
            return Change(path=call.input.name, before=self.get(call.input.name), after=call.input.text)

        def facts(call: ToolCall[Note]) -> list[str]:
            return ["Replaces." if call.input.name in self else "Makes."]

        @tool("note.set", risk=Risk.WRITE, change=change, facts=facts, **more)
        async def set_note(call: ToolCall[Note]) -> str:
            """Set a note."""
            self.done.append(call.change)
            self[call.input.name] = call.input.text
            return "set"

        return set_note


def asks(*calls: dict[str, str]) -> list[Answer]:
    return [says("", *(call("note.set", **each) for each in calls)), says("Done.")]


ONE = asks({"name": "a", "text": "new"})
SHOWN = {"path": "a", "before": "old", "after": "new"}


def gate_of(ledger: Ledger, path: str = "1/0/human") -> dict[str, JSON]:
    asked = View(ledger).call(path)
    assert asked
    payload: dict[str, JSON] = asked.payload["payload"]
    return payload


def approval_of(ledger: Ledger) -> Approval:
    entry = Outputs(ledger).entry("1/0")
    assert entry
    assert entry.approval
    return entry.approval


def result_of(ledger: Ledger, path: str = "1/0") -> dict[str, JSON]:
    result = View(ledger).result(path)
    assert result
    return result.payload


async def test_what_a_call_would_change_is_recorded_and_bound() -> None:
    """The gate shows it, the digest covers it, the output keeps it, and the tool is given it."""
    notes = Notes(a="old")
    registry, _ = site(ONE, [notes.tool()])
    waiting = await carry_on(registry)
    asked = gate_of(waiting)
    assert asked["change"] == SHOWN
    named = (asked["tool"], asked["input"], asked["schema"], asked["facts"])
    assert asked["digest"] == shown_digest(*named, SHOWN) != shown_digest(*named)
    assert approval_of(waiting).change == Change(**SHOWN)
    final = await carry_on(registry, decide(waiting, "1/0/human"))
    assert (notes["a"], notes.done) == ("new", [Change(**SHOWN)])
    assert approval_of(final).change == Change(**SHOWN), "a record of what was approved, not of how it is now"


@pytest.mark.parametrize("meanwhile", ["other", None, "new"], ids=["changed", "removed", "done by another"])
async def test_what_is_another_by_now_does_not_run(meanwhile: str | None) -> None:
    """The text is no longer the one that was shown: nothing begins, and the model is told what to do (I6)."""
    notes = Notes(a="old")
    registry, provider = site(ONE, [notes.tool()])
    approved = decide(await carry_on(registry), "1/0/human")
    notes.pop("a")
    if meanwhile:
        notes["a"] = meanwhile
    ledger = await carry_on(registry, approved)
    assert notes.done == []
    assert result_of(ledger)["code"] == "changed_since"
    assert "1/0 action_start" not in lines(ledger)
    assert results_in(provider.asked[1]) == [
        "Error (changed_since): What this would change is no longer as it was when you called: read it again, then call"
        " again."
    ]


async def test_what_cannot_work_any_more_does_not_run() -> None:
    """Approved, and by now the tool itself says that it cannot: the model reads why."""
    broken: list[str] = []
    notes = Notes(a="old")
    plain = notes.tool()

    def change(call: ToolCall[Note]) -> Change | None:
        if broken:
            raise ToolError("'a' is a link.", "link")
        assert plain.change
        return plain.change(call)

    @tool("note.set", change=change, facts=plain.facts)
    def set_note(call: ToolCall[Note]) -> None:
        """Set a note."""
        notes.done.append(call.change)

    registry, _ = site(ONE, [set_note])
    approved = decide(await carry_on(registry), "1/0/human")
    broken.append("now")
    result = result_of(await carry_on(registry, approved))
    assert notes.done == []
    assert (result["code"], result["message"][-14:]) == ("changed_since", "'a' is a link.")


async def test_nobody_is_asked_about_what_cannot_work() -> None:
    """The error is the call's result at once; the others of the batch are asked about, and run."""
    notes = Notes()
    batch = asks({"name": "a/b", "text": "x"}, {"name": "a", "text": "x"}, {"name": "c/d", "text": "x"})
    registry, provider = site(batch, [notes.tool()])
    waiting = await carry_on(registry)
    assert open_gates(waiting) == ["1/1/human"]
    assert [result_of(waiting, path)["code"] for path in ("1/0", "1/2")] == ["bad_name"] * 2
    await carry_on(registry, decide(waiting, "1/1/human"))
    assert dict(notes) == {"a": "x"}
    assert results_in(provider.asked[1]) == [
        "Error (bad_name): 'a/b' is no name.",
        "set",
        "Error (bad_name): 'c/d' is no name.",
    ]


async def test_of_two_changes_of_one_text_only_the_first_is_asked_about() -> None:
    """The second would begin from what the first leaves, which nobody has seen yet."""
    notes = Notes(a="old")
    registry, provider = site(asks({"name": "a", "text": "1"}, {"name": "a", "text": "2"}), [notes.tool()])
    waiting = await carry_on(registry)
    assert open_gates(waiting) == ["1/0/human"]
    await carry_on(registry, decide(waiting, "1/0/human"))
    assert notes["a"] == "1"
    assert results_in(provider.asked[1])[1].startswith("Error (one_by_one): A call before this one changes 'a' too")


class DeniesFirst(AskEverybody):
    """A rule that denies the text "1", and leaves others to people."""

    async def decide(self, tool: Tool, call: ToolCall[Any], asked: Asked) -> GateVerdict:
        return GateVerdict("deny", "rule:1", "Not that.") if call.input.text == "1" else GateVerdict()


async def test_what_a_rule_denies_stands_in_nobodys_way() -> None:
    """It changes nothing: the next call may be asked about, which changes the same text."""
    notes = Notes(a="old")
    registry, _ = site(asks({"name": "a", "text": "1"}, {"name": "a", "text": "2"}), [notes.tool()])
    waiting = await carry_on(registry, gatekeeper=DeniesFirst())
    assert open_gates(waiting) == ["1/1/human"]
    ledger = await carry_on(registry, decide(waiting, "1/1/human"), gatekeeper=DeniesFirst())
    assert result_of(ledger)["code"] == "rejected"
    assert notes["a"] == "2"


class Allows(AskEverybody):
    """A rule that lifts every gate."""

    async def decide(self, tool: Tool, call: ToolCall[Any], asked: Asked) -> GateVerdict:
        return GateVerdict("allow", "rule:1")


async def test_a_call_that_was_refused_stays_so() -> None:
    """Even where it would work once the call before it is done: its result stands, and no gate opens on it."""
    notes = Notes()
    plain = notes.tool()

    def change(call: ToolCall[Note]) -> Change:
        if call.input.name == "b" and "a" not in notes:
            raise ToolError("There is no a.", "not_found")
        return Change(path=call.input.name, before=notes.get(call.input.name), after=call.input.text)

    @tool("note.set", risk=Risk.WRITE, change=change)
    async def set_note(call: ToolCall[Note]) -> str:
        """Set a note."""
        return str(await plain.function(call))

    registry, _ = site(asks({"name": "a", "text": "1"}, {"name": "b", "text": "2"}), [set_note])
    ledger = await carry_on(registry, gatekeeper=Allows())
    assert dict(notes) == {"a": "1"}
    assert result_of(ledger, "1/1")["code"] == "not_found"
    assert "1/1/human action_call" not in lines(ledger)


@pytest.mark.parametrize(
    "text",
    ["x" * (CHANGE_MOST + 1), "\n" * (LINES_MOST + 1), "\u202e" * (SPELLED_MOST + 1), "\u3164" * (SPELLED_MOST + 1)],
    ids=["characters", "lines", "characters that show nothing", "letters that show nothing"],
)
async def test_what_is_too_large_is_named_and_not_recorded(text: str) -> None:
    """The facts warn and bind it by its sum: another text of the same size does not run."""
    notes = Notes(a=text)
    registry, _ = site(ONE, [notes.tool()])
    waiting = await carry_on(registry)
    asked = gate_of(waiting)
    assert "change" not in asked
    assert asked["facts"][1].startswith(f"Not shown as a diff: too large ({len(text):,} characters before, 3 after;")
    approved = decide(waiting, "1/0/human")
    notes["a"] = text[:-1] + "?"
    assert result_of(await carry_on(registry, approved))["code"] == "changed_since"
    assert notes.done == []
    notes["a"] = text
    await carry_on(registry, approved)
    assert notes["a"] == "new"


async def test_a_card_is_shown_even_where_its_change_fails() -> None:
    """What a tool says of a call may be broken: the gate stands, and says so."""

    @tool("note.set", change=lambda call: Change(path=5, before=None, after=""))
    def set_note(call: ToolCall[Note]) -> None:
        """Set a note."""

    asked = gate_of(await carry_on(site(ONE, [set_note])[0]))
    assert asked["facts"][0].startswith("Not shown as a diff: 1 validation error")


async def test_a_recorded_gate_is_not_looked_at_again_while_it_waits() -> None:
    """A replay shows what was shown."""
    notes = Notes(a="old")
    registry, _ = site(ONE, [notes.tool()])
    waiting = await carry_on(registry)
    notes["a"] = "other"
    assert gate_of(await carry_on(registry, waiting))["change"] == SHOWN


async def crashed(notes: Notes, ran: bool) -> Ledger:
    """The ledger of an approved call that began and whose worker died, before or after its work."""
    registry, _ = site(ONE, [notes.tool()])
    approved = decide(await carry_on(registry), "1/0/human")
    journal = CrashingJournal(approved, CrashPoint(2))
    with pytest.raises(Crash):
        await carry_on(registry, approved, journal=journal)
    assert lines(journal.ledger)[-1] == "1/0 action_start"
    if not ran:
        notes["a"] = "old"
    return await carry_on(registry, journal.ledger)


async def test_an_interrupted_call_is_asked_about_with_what_it_was_to_change() -> None:
    """Whatever the text is now: the call may have run."""
    notes = Notes(a="old")
    waiting = await crashed(notes, ran=True)
    assert open_gates(waiting) == ["1/0/card1"]
    assert gate_of(waiting, "1/0/card1")["change"] == SHOWN


@pytest.mark.parametrize("ran", [False, True])
async def test_run_again_runs_if_it_still_is_the_same_change(ran: bool) -> None:
    """Told to run again, it does where nothing happened; where it ran after all, it is not done to another text."""
    notes = Notes(a="old")
    waiting = await crashed(notes, ran)
    ledger = await carry_on(site(ONE, [notes.tool()])[0], decide(waiting, "1/0/card1", "run_again"))
    assert len(notes.done) == (1 if ran else 2)
    if ran:
        result = result_of(ledger)
        assert result["code"] == "interrupted"
        assert "began once" in result["message"]
        assert "no longer as it was when you called" in result["message"]


async def test_an_edit_brings_a_change_of_its_own() -> None:
    """The output keeps both: what runs, and what the agent proposed."""
    notes = Notes(a="old", b="kept")
    set_note = notes.tool()
    registry, _ = site(ONE, [set_note])
    edited: dict[str, JSON] = {"name": "b", "text": "mine"}
    looks = shown_of(set_note, edited)
    decided = decide(await carry_on(registry), "1/0/human", input=edited, digest=looks.digest, **looks.recorded)
    approval = approval_of(decided)
    assert approval.change == Change(path="b", before="kept", after="mine")
    assert approval.proposed == Change(**SHOWN)
    await carry_on(registry, decided)
    assert dict(notes) == {"a": "old", "b": "mine"}


@pytest.mark.parametrize("change", [5, {"path": "a"}, [], {"path": "a", "before": 1, "after": "b"}])
async def test_a_change_that_makes_no_sense_breaks_no_fold(change: JSON) -> None:
    """Whatever stands in a ledger, folding it never raises."""
    notes = Notes(a="old")
    waiting = await carry_on(site(ONE, [notes.tool()])[0])
    assert approval_of(decide(waiting, "1/0/human", change=change)).change is None


async def test_a_tool_that_nobody_is_asked_about_is_given_its_change() -> None:
    """Worked out once, where its gate is lifted; and what cannot work is its result."""
    notes = Notes(a="old")
    registry, _ = site(asks({"name": "a", "text": "new"}, {"name": "/", "text": ""}), [notes.tool(approval=False)])
    ledger = await carry_on(registry)
    assert notes.done == [Change(**SHOWN)]
    assert result_of(ledger, "1/1")["code"] == "bad_name"
