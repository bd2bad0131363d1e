"""Whole turns of the engine over real HTTP, the same in every protocol. The server refuses whatever is not valid."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.engine.agent import attempts
from agents.engine.agent.model import model
from agents.engine.agent.projection import GO_ON, NOBODY_SPOKE
from agents.engine.agent.turn import agent
from agents.engine.interfaces.provider import Provider
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import EMPTY, Ledger
from agents.engine.outputs.timeline import Outputs
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.view import View
from tests.engine.cast import World
from tests.engine.support import Site, carry_on, decide, end_of, lines
from tests.providers.support import KEY, asks
from tests.wire.script import Call, Refusal, Reply
from tests.wire.server import WireServer

READ = Call("fx_read", {"a": 1})
DONE = {"state": "completed", "stop_reason": "text"}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def site(speaker: Provider, world: World, monkeypatch: pytest.MonkeyPatch) -> PolicyRegistry:
    """An agent with the cast's tools, whose model speaks the protocol; it waits for nothing between attempts."""
    monkeypatch.setattr(attempts, "BACKOFF_SECONDS", (0.0,) * 3)
    registry = PolicyRegistry()
    registry.register("model")(model(speaker))
    registry.register("agent")(agent(tools=world.tools(), prompt="You are a test."))
    return registry


def ended(ledger: Ledger) -> dict[str, Any]:
    """The turn's end: its state and why."""
    end = end_of(ledger)
    assert end
    return {key: end[key] for key in ("state", "stop_reason")}


def results(ledger: Ledger, path: str) -> Any:
    result = View(ledger).result(path)
    assert result
    return result.payload


async def test_text_a_call_its_result_and_an_answer(
    wire: WireServer, site: PolicyRegistry, world: World, protocol: str
) -> None:
    """Text beside a call is kept and sent back with it; the result follows the call (S48, S92, R10, I10)."""
    wire.script = [asks(protocol, "I look.", READ), asks(protocol, "", READ), Reply("Read it.")]
    ledger = await carry_on(site)
    assert ended(ledger) == DONE
    assert [s.payload["text"] for s in ledger if s.type == "text"] == ["I look.", "Read it."]
    assert world.done == [("fx.read", 1)] * 2
    sent = wire.requests[-1].raw.decode()
    assert [sent.count(text) for text in ("I look.", "read 1", "You are a test.")] == [1, 2, 1]


async def test_two_calls_at_once(wire: WireServer, site: PolicyRegistry, world: World, protocol: str) -> None:
    """Both get their results, in call order; a model that writes JSON asks for one after the other (S28, R1)."""
    two = (READ, Call("fx_read", {"a": 2}))
    wire.script = (
        [*(asks(protocol, "", call) for call in two), Reply("Both.")]
        if protocol == "json"
        else [Reply("", two), Reply("Both.")]
    )
    ledger = await carry_on(site)
    assert ended(ledger) == DONE
    assert sorted(world.done) == [("fx.read", 1), ("fx.read", 2)]
    sent = wire.requests[-1].raw.decode()
    assert 0 < sent.index("read 1") < sent.index("read 2")


async def test_an_approval_in_between_is_invisible(
    wire: WireServer, site: PolicyRegistry, world: World, protocol: str
) -> None:
    """A command waits, is approved, runs; its result has the one form (S91, S100)."""
    wire.script = [asks(protocol, "", Call("shell_run", {"command": "ls"})), Reply("Done.")]
    waiting = await carry_on(site)
    assert len(wire.requests) == 1
    ledger = await carry_on(site, decide(waiting, "1/0/human"))
    assert ended(ledger) == DONE
    assert world.done == [("shell.run", "ls")]
    assert "did ls\\nexit: 0 (1.2s)" in wire.requests[1].raw.decode()


@pytest.mark.parametrize(
    ("call", "code", "told"),
    [
        (Call("no_such", {}), "unknown_tool", "No tool 'no_such'. Call tools by"),
        (Call("fx_read", {"b": 1}), "invalid_input", "invalid_input"),
    ],
)
async def test_calls_that_cannot_run_are_told_to_the_model(
    wire: WireServer, site: PolicyRegistry, world: World, *, protocol: str, call: Call, code: str, told: str
) -> None:
    """A tool that is not there and input that does not fit are errors that the model reads; the turn goes on (S27)."""
    wire.script = [asks(protocol, "", call), asks(protocol, "", READ), Reply("Now.")]
    ledger = await carry_on(site)
    assert ended(ledger) == DONE
    assert results(ledger, "1/0")["code"] == code
    assert told in wire.requests[1].raw.decode()
    assert world.done == [("fx.read", 1)]


async def test_a_turn_after_this_one_is_told_of_it(wire: WireServer, site: PolicyRegistry, protocol: str) -> None:
    """Earlier prompts are history, calls and all (S13)."""
    wire.script = [asks(protocol, "I look.", READ), Reply("Read it."), Reply("As I said.")]
    first = await carry_on(site)
    services = Site(prompt=2, past=[PastTurn(1, "go", Outputs(first).in_order())])
    assert ended(await carry_on(site, EMPTY, services=services, payload={"text": "and?"})) == DONE
    sent = wire.requests[-1].raw.decode()
    assert 0 < sent.index("I look.") < sent.index("read 1") < sent.index("Read it.") < sent.index("and?")


def site_line(body: dict[str, Any]) -> str:
    """Where the site's own line is in a request: at the end of the system message, or in a last item; else ""."""
    if "messages" in body:
        system = body["messages"][0]["content"]
        return next((line for line in (GO_ON, NOBODY_SPOKE) if system.endswith(f"\n\n{line}")), "")
    *_, last = body["input"]
    return str(last["content"][0]["text"]) if last.get("role") == "developer" else ""


@pytest.mark.parametrize(("payload", "line"), [({}, NOBODY_SPOKE), ({"continues": 1}, GO_ON)])
async def test_a_turn_in_which_nobody_spoke_sends_no_message_of_a_user(
    wire: WireServer, site: PolicyRegistry, *, protocol: str, strict: bool, payload: dict[str, Any], line: str
) -> None:
    """The site's line stands beside the history in each round; a server that insists is sent it as the user's (S4)."""
    wire.script = [asks(protocol, "I look.", READ), Reply("Good morning.")]
    assert ended(await carry_on(site, payload=payload)) == DONE
    for request in wire.requests:
        assert request.raw.decode().count(line) == 1
        assert site_line(request.body) == ("" if strict else line)
        items = [item for item in request.body.get("messages", request.body.get("input")) if item.get("role") == "user"]
        said = [item for item in items if not str(item["content"]).startswith("[tool_result:")]
        assert [line in str(item) for item in said] == ([True] if strict else [])
    first, second = (_history(request.body) for request in wire.requests)
    assert second[: len(first)] == first, "the beginning stays, for the prompt's cache"
    assert len(second) > len(first)


def _history(body: dict[str, Any]) -> list[Any]:
    """The history of a request, without what the site says beside it."""
    items = body.get("messages") or body["input"]
    return [item for item in items if item.get("role") not in ("system", "developer")]


async def test_a_stream_cut_inside_a_call_runs_nothing(
    wire: WireServer, site: PolicyRegistry, world: World, protocol: str
) -> None:
    """The half call is discarded, the model asked once more, the tool run once (T-31)."""
    whole = asks(protocol, "I look.", Call("report_write", {"name": "a name of several pieces, long enough"}))
    cut = Reply(whole.text, whole.calls, break_after=_in_the_call(whole, protocol))
    wire.script = [cut, whole, Reply("Done.")]
    ledger = await carry_on(site)
    assert ended(ledger) == DONE
    assert len(wire.requests) == 3
    assert len(world.done) == 1
    assert [s.payload["code"] for s in ledger if s.type == "action_retry"] == ["stream_broken"]
    assert wire.requests[0].raw == wire.requests[1].raw


def _in_the_call(reply: Reply, protocol: str) -> int | str:
    """Where to break the stream so that some of the call's arguments have come."""
    return "response.function_call_arguments.delta" if protocol == "responses" else 6


async def test_an_empty_answer_is_asked_again(wire: WireServer, site: PolicyRegistry) -> None:
    """Nothing said and nothing asked is no answer."""
    wire.script = [Reply(), Reply("Yes.")]
    ledger = await carry_on(site)
    assert ended(ledger) == DONE
    assert [s.payload["code"] for s in ledger if s.type == "action_retry"] == ["empty_answer"]


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (Refusal(401, "invalid_api_key", f"Incorrect API key provided: {KEY}."), "key_refused"),
        (Refusal(400, "context_length_exceeded", "Too long."), "context_overflow"),
        (Refusal(404, "model_not_found", "No such model."), "unknown_model"),
    ],
)
async def test_what_will_not_pass_ends_the_turn(
    wire: WireServer, site: PolicyRegistry, refusal: Refusal, code: str
) -> None:
    """Asked once; the turn fails and says why, without the key (T-57)."""
    wire.script = [Reply(refusal=refusal), Reply("Never.")]
    ledger = await carry_on(site)
    assert ended(ledger) == {"state": "failed", "stop_reason": "model_error"}
    assert results(ledger, "1")["code"] == code
    assert len(wire.requests) == 1
    assert KEY not in json.dumps([s.payload for s in ledger])


@pytest.mark.parametrize("refusal", [Refusal(429, headers={"Retry-After": "0"}), Refusal(500), Refusal(503)])
async def test_what_passes_is_asked_again(wire: WireServer, site: PolicyRegistry, refusal: Refusal) -> None:
    """Too much at once and a server in trouble: again, each attempt recorded."""
    wire.script = [Reply(refusal=refusal), Reply(refusal=refusal), Reply("Yes.")]
    ledger = await carry_on(site)
    assert ended(ledger) == DONE
    assert [line for line in lines(ledger) if line.startswith("1 ")] == [
        *("1 action_call", "1 action_start", "1 action_retry", "1 action_start", "1 action_retry", "1 action_start"),
        *("1 text", "1 action_result"),
    ]


async def test_usage_adds_up_over_rounds(wire: WireServer, site: PolicyRegistry, protocol: str) -> None:
    """Each round records its own counts (S39)."""
    counts = {"input_tokens": 100, "cached_tokens": 60, "output_tokens": 20, "reasoning_tokens": 5}
    first = asks(protocol, "", READ)
    wire.script = [Reply(first.text, first.calls, usage=counts), Reply("Done.", usage={**counts, "cached_tokens": 90})]
    ledger = await carry_on(site)
    assert [results(ledger, path)["usage"] for path in ("1", "2")] == [counts, {**counts, "cached_tokens": 90}]
    assert results(ledger, "1")["model"] == "small-model"
