"""Gates: who decides, what is asked, and that only what was approved runs."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel, HttpUrl

from agents.engine.errors import RegistryError
from agents.engine.grants.grant import Asked
from agents.engine.ledger import Ledger
from agents.engine.outputs.kinds import ToolOutput
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.gatekeeper import AskEverybody, GateVerdict
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool
from agents.engine.view import View
from tests.engine.cast import Amount, Command, World, site
from tests.engine.journals import CrashingJournal
from tests.engine.support import call, carry_on, decide, digest_of, end_of, lines, open_gates, results_in, says, seen

ONE = [says("I will.", call("shell.run", command="ls")), says("Done.")]


def result_of(ledger: Ledger, path: str = "1/0") -> Any:
    result = View(ledger).result(path)
    return result.payload if result else None


async def test_a_gated_call_waits_and_has_not_run(world: World) -> None:
    """The tool is not invoked, the entry is pending with the reason, the turn waits (S31, S92)."""
    registry, _ = site(ONE, world.tools())
    ledger = await carry_on(registry)
    assert world.done == []
    said, entry = Outputs(ledger).in_order()
    assert said.type == "text"
    assert isinstance(entry, ToolOutput)
    assert entry.result.model_dump() == {"type": "pending", "reason": "Run: ls"}
    asked = View(ledger).call("1/0/human")
    assert asked
    assert {k: asked.payload["payload"][k] for k in ("ask", "tool", "input", "reason", "risk", "expires_at")} == {
        "ask": "approve",
        "tool": "shell.run",
        "input": {"command": "ls"},
        "reason": "Run: ls",
        "risk": "destructive",
        "expires_at": "2026-01-06T12:00:00+00:00",
    }


async def test_what_a_tool_says_of_undoing_is_recorded_and_no_part_of_what_is_approved() -> None:
    asked = {}
    for said in ("", "Pull the paper out."):

        @tool("shell.run", undoable=said)
        def run(call: ToolCall[Command]) -> None:
            """Run it."""

        registry, _ = site(ONE, [run])
        gate = View(await carry_on(registry)).call("1/0/human")
        assert gate
        asked[said] = gate.payload["payload"]
    plain, more = asked.values()
    assert more == plain | {"undoable": "Pull the paper out."}


async def test_a_turn_that_waits_is_left_as_it_is_by_another_run(world: World) -> None:
    """Running it again without a decision records nothing, asks nobody, does nothing."""
    registry, provider = site(ONE, world.tools())
    ledger = await carry_on(registry)
    assert await carry_on(registry, ledger) == ledger
    assert len(provider.asked) == 1


async def test_approve_runs_the_original_input(world: World) -> None:
    """And the loop resumes with the result (S34)."""
    registry, provider = site(ONE, world.tools())
    ledger = await carry_on(registry, decide(await carry_on(registry), "1/0/human"))
    assert world.done == [("shell.run", "ls")]
    assert results_in(provider.asked[1]) == ["did ls\nexit: 0 (1.2s)"]
    end = end_of(ledger)
    assert end
    assert end["state"] == "completed"


@pytest.mark.parametrize(
    ("decided", "said", "code", "message"),
    [
        ("reject", {"reason": "Not now."}, "rejected", "Not now."),
        ("reject", {}, "rejected", "A person rejected this call."),
        ("expired", {}, "expired", "This was not done in time."),
        ("cancelled", {}, "cancelled", "Cancelled before it ran."),
    ],
)
async def test_a_call_that_is_not_approved_is_never_invoked(
    world: World, decided: str, said: dict[str, Any], code: str, message: str
) -> None:
    """The model sees a failed call that says why, and the loop goes on (S35, R11)."""
    registry, provider = site(ONE, world.tools())
    ledger = await carry_on(registry, decide(await carry_on(registry), "1/0/human", decided, **said))
    assert world.done == []
    assert result_of(ledger) == {"error": True, "code": code, "message": message}
    assert results_in(provider.asked[1]) == [f"Error ({code}): {message}"]
    assert "1/0 action_start" not in lines(ledger)


async def test_an_edited_input_is_what_runs(world: World) -> None:
    """approve with another input: that runs; the entry shows both, the model sees the edited arguments."""
    tools = world.tools()
    registry, provider = site(ONE, tools)
    edited = {"command": "ls -l"}
    shell = next(t for t in tools if t.name == "shell.run")
    waiting = await carry_on(registry)
    ledger = await carry_on(
        registry, decide(waiting, "1/0/human", input=edited, digest=digest_of(shell, edited), note="Long, please.")
    )
    assert world.done == [("shell.run", "ls -l")]
    entry = Outputs(ledger).entry("1/0")
    assert entry
    assert (entry.input, entry.proposed) == (edited, {"command": "ls"})
    asked = seen(provider.asked[1])[1]
    assert asked.calls[0].arguments == edited  # type: ignore[union-attr]


@pytest.mark.parametrize("edit", [{"command": "ls -l"}, {"cmd": 1}])
async def test_an_edit_that_was_not_what_the_person_saw_does_not_run(world: World, edit: dict[str, Any]) -> None:
    """The digest of the decision must be that of the input that would run, and the input must be valid (I6)."""
    registry, _ = site(ONE, world.tools())
    ledger = await carry_on(registry, decide(await carry_on(registry), "1/0/human", input=edit))
    assert world.done == []
    assert result_of(ledger)["code"] == "tool_changed"


async def test_a_decision_for_another_digest_runs_nothing(world: World) -> None:
    """What is approved is what runs."""
    registry, _ = site(ONE, world.tools())
    ledger = await carry_on(registry, decide(await carry_on(registry), "1/0/human", digest="0" * 64))
    assert world.done == []
    assert result_of(ledger)["code"] == "tool_changed"
    assert "1/0 action_start" not in lines(ledger)


async def test_a_tool_whose_schema_changed_while_waiting_does_not_run(world: World) -> None:
    """The person approved a call of another tool than the one that would run."""
    registry, _ = site(ONE, world.tools())
    waiting = await carry_on(registry)
    ran: list[str] = []

    class Changed(Command):
        shell: str = "bash"

    @tool("shell.run")
    async def changed(call: ToolCall[Changed]) -> None:
        ran.append(call.input.command)

    ledger = await carry_on(site(ONE, [changed])[0], decide(waiting, "1/0/human"))
    assert ran == []
    assert result_of(ledger)["code"] == "tool_changed"


def gated(rule: Any = None, **more: Any) -> tuple[Tool, list[int]]:
    ran: list[int] = []

    @tool("act", approval=rule, **more)
    async def act(call: ToolCall[Amount]) -> None:
        ran.append(call.input.amount)

    return act, ran


def _raises(call: ToolCall[Amount]) -> str:
    raise ValueError("no idea")


def _exits(call: ToolCall[Amount]) -> str:
    raise SystemExit(3)


async def _gives_up(call: ToolCall[Amount]) -> str:
    raise asyncio.CancelledError


async def _reason(call: ToolCall[Amount]) -> str:
    return f"{call.input.amount} is much"


@pytest.mark.parametrize(
    ("rule", "more", "reason"),
    [
        (None, {}, "Proposed by planning model."),
        (None, {"risk": Risk.WRITE}, "Proposed by planning model."),
        (True, {"risk": Risk.READ}, "Proposed by planning model."),
        ("Because.", {}, "Because."),
        (_reason, {}, "5 is much"),
        (_raises, {}, "Proposed by planning model. (its approval rule failed: no idea)"),
        (_exits, {}, "Proposed by planning model. (its approval rule failed: SystemExit: 3)"),
        (_gives_up, {}, "Proposed by planning model. (its approval rule gave itself up)"),
        (True, {"justify": _exits}, "Proposed by planning model."),
        (True, {"facts": _exits}, "Proposed by planning model."),
        (True, {"change": _exits}, "Proposed by planning model."),
        (True, {"justify": _raises}, "Proposed by planning model."),
        (True, {"justify": lambda asked: None}, "Proposed by planning model."),
        (True, {"justify": lambda asked: " "}, "Proposed by planning model."),
        (True, {"justify": lambda asked: {1}}, "Proposed by planning model."),
        (True, {"change": lambda call: "a text"}, "Proposed by planning model."),
        (lambda call: True, {"justify": lambda asked: None}, "Proposed by planning model."),
        (False, {}, None),
        (lambda call: None, {}, None),
        (None, {"risk": Risk.READ}, None),
        ({"required": True, "reason": "It is Friday."}, {}, "It is Friday."),
        ({"required": True}, {}, "Proposed by planning model."),
        ({"required": False, "reason": "Nobody minds."}, {}, None),
        (lambda call: {"required": call.input.amount > 4, "reason": "5 is much"}, {}, "5 is much"),
        (lambda call: {"required": True, "reason": ""}, {}, "Proposed by planning model."),
        (lambda call: {"required": call.input.amount > 5}, {}, None),
        (lambda call: True, {}, "Proposed by planning model."),
        (lambda call: False, {}, None),
    ],
)
async def test_when_a_person_is_asked(rule: Any, more: dict[str, Any], reason: str | None) -> None:
    """What the author declares is honoured; undeclared is gated unless READ; a rule that fails asks (S29, S30, R18)."""
    act, ran = gated(rule, **more)
    ledger = await carry_on(site([says("", call("act", amount=5)), says("Done.")], [act])[0])
    assert (open_gates(ledger) == ["1/0/human"]) is (reason is not None)
    assert ran == ([] if reason else [5])
    if reason:
        asked = View(ledger).call("1/0/human")
        assert asked
        assert asked.payload["payload"]["reason"] == reason


class Order(BaseModel):
    copies: int = 1
    title: str = ""
    url: str = ""
    command: str | None = None
    page: HttpUrl | None = None


@pytest.mark.parametrize(
    ("asked", "more", "line"),
    [
        ({"title": "Ls", "url": "http://x", "command": "ls"}, {}, "Run: ls"),
        ({"title": "Ls", "url": "http://x"}, {}, "Fetch: http://x"),
        ({"title": "Ls", "url": ""}, {}, "Ls"),
        ({"title": "  ", "page": "https://example.org/a"}, {}, "https://example.org/a"),
        ({"copies": 2}, {}, "Proposed by planning model."),
        ({"command": "ls"}, {"justify": lambda asked: f"{asked.copies} of it"}, "1 of it"),
        ({"command": "ls"}, {"justify": lambda asked: " "}, "Run: ls"),
        ({"command": "ls"}, {"justify": lambda asked: asked.nothing}, "Run: ls"),
    ],
)
async def test_the_line_is_the_tools_own_or_made_of_its_arguments(asked: Any, more: Any, line: str) -> None:
    """What it runs or fetches, else its first text argument (S93)."""

    @tool("order", **more)
    async def order(call: ToolCall[Order]) -> None:
        raise AssertionError

    ledger = await carry_on(site([says("", call("order", **asked))], [order])[0])
    gate = View(ledger).call("1/0/human")
    assert gate
    assert gate.payload["payload"]["reason"] == line


UNCLEAR = [
    "", " ", 0, 1, 0.0, [], (), {}, {"required": 0}, {"required": None}, {"required": "no"}, {"reason": "Because."},
    {"required": False, "why": "A slip"}, {"required": False, "reason": 5}, b"no", object(),
]  # fmt: skip


@pytest.mark.parametrize("said", UNCLEAR)
async def test_a_slip_closes_the_gate(said: Any) -> None:
    """A rule's answer that is neither yes nor no asks a person, and says what is wrong with it (S29, S30)."""
    act, ran = gated(lambda call: said)
    ledger = await carry_on(site([says("", call("act", amount=5))], [act])[0])
    assert ran == []
    asked = View(ledger).call("1/0/human")
    assert asked
    reason = asked.payload["payload"]["reason"]
    assert reason.startswith("Proposed by planning model. (its approval rule failed: ")
    assert "is not True, False, a reason" in reason


@pytest.mark.parametrize("said", UNCLEAR)
def test_a_slip_in_a_declaration_stops_the_start(said: Any) -> None:
    """What is declared is neither yes nor no: the tool is refused where it is made (S29)."""
    with pytest.raises(RegistryError, match=r"act: approval: .+ is not True, False, a reason"):
        gated(said, risk=Risk.READ)


async def test_a_card_is_shown_even_where_its_facts_fail() -> None:
    """What a tool says of a call may fail; the gate stands, and says so."""
    act, _ = gated(True, facts=_raises)
    ledger = await carry_on(site([says("", call("act", amount=5))], [act])[0])
    asked = View(ledger).call("1/0/human")
    assert asked
    assert asked.payload["payload"]["facts"] == ["What else is true of this call is unknown: no idea"]


class Rules(AskEverybody):
    """Decides every gate as `verdict` says."""

    def __init__(self, verdict: GateVerdict) -> None:
        self.verdict = verdict

    async def decide(self, tool: Tool, call: ToolCall[Any], asked: Asked) -> GateVerdict:
        return self.verdict


@pytest.mark.parametrize(("verdict", "decided"), [("allow", "approve"), ("deny", "reject")])
async def test_a_standing_rule_decides_in_the_record_that_asks(world: World, verdict: Any, decided: str) -> None:
    """Gate and decision stand in one record by the rule, and nothing pauses (R18)."""
    registry, provider = site(ONE, world.tools())
    journal = CrashingJournal()
    await carry_on(registry, journal=journal, gatekeeper=Rules(GateVerdict(verdict, "rule:12", "Never on Friday.")))
    gate = next(r for r in journal.records if "1/0/human action_call" in lines(r.steps))
    answer = next(step for step in gate.steps if step.path == "1/0/human" and step.type == "action_result")
    assert (answer.actor, answer.payload["decision"], answer.payload["via"]) == ("rule:12", decided, "rule")
    assert ". pause" not in lines(journal.ledger)
    assert world.done == ([("shell.run", "ls")] if verdict == "allow" else [])
    if verdict == "deny":
        assert results_in(provider.asked[1]) == ["Error (rejected): Never on Friday."]


async def test_what_held_when_it_was_approved_must_still_hold(world: World) -> None:
    """A command approved as sandboxed does not run where the sandbox is gone meanwhile (I6)."""
    boxed = True

    @tool("box.run", facts=lambda _: ["Sandboxed." if boxed else "Not sandboxed."])
    async def run_boxed(call_: ToolCall[Command]) -> str:
        """Run it in the box."""
        world.done.append(("box.run", call_.input.command))
        return "ran"

    registry, _ = site([says("I will.", call("box.run", command="ls")), says("Done.")], [run_boxed])
    approved = decide(await carry_on(registry), "1/0/human")
    boxed = False
    ledger = await carry_on(registry, approved)

    assert world.done == []
    assert result_of(ledger)["code"] == "changed_since"
