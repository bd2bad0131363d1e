"""Servers that speak the protocol roughly."""

from __future__ import annotations

from typing import Any

import pytest

from agents.engine.interfaces.provider import ToolRequest
from agents.engine.ledger import JSON
from agents.providers.responses.protocol import Responses
from tests.providers.support import HELLO, ask, collect, refusal, request
from tests.wire.script import Reply
from tests.wire.server import WireServer

Event = dict[str, Any]

COMPLETED: Event = {"type": "response.completed", "response": {"model": "m", "output": []}}
MESSAGE: Event = {"type": "message", "content": [{"type": "output_text", "text": "Hi."}]}
CALL: Event = {"type": "function_call", "call_id": "c1", "name": "echo", "arguments": '{"text": "x"}'}
THE_CALL = ToolRequest("echo", {"text": "x"}, "c1")


def text(delta: str, **where: JSON) -> Event:
    return {"type": "response.output_text.delta", "delta": delta, **where}


def fragment(delta: str, **where: JSON) -> Event:
    return {"type": "response.function_call_arguments.delta", "delta": delta, **where}


def added(item: Event, **where: JSON) -> Event:
    return {"type": "response.output_item.added", "item": item, **where}


def done(item: Event, **where: JSON) -> Event:
    return {"type": "response.output_item.done", "item": item, **where}


async def test_the_last_event_may_hold_everything(wire: WireServer, provider: Responses) -> None:
    """No deltas, no items: the completed response is enough."""
    wire.script = [Reply(events=({"type": "response.completed", "response": {"output": [MESSAGE, CALL]}},))]
    answer = await ask(provider)
    assert (answer.text, answer.calls, answer.usage, answer.model) == ("Hi.", (THE_CALL,), {}, "")


async def test_the_items_may_hold_everything(wire: WireServer, provider: Responses) -> None:
    """A completed response without output: the finished items count."""
    wire.script = [Reply(events=(done(MESSAGE, output_index=0), done(CALL, output_index=1), COMPLETED))]
    answer = await ask(provider)
    assert (answer.text, answer.calls) == ("Hi.", (THE_CALL,))


async def test_the_pieces_may_hold_everything(wire: WireServer, provider: Responses) -> None:
    """Only fragments: arguments are put together by the index of their call."""
    begun = {**CALL, "arguments": ""}
    events = (
        text("H", output_index=0),
        added(begun, output_index=1),
        added({**begun, "call_id": "c2"}, output_index=2),
        fragment('{"text"', output_index=1),
        fragment("{", output_index=2),
        fragment(': "x"}', output_index=1),
        fragment("}", output_index=2),
        text("i.", output_index=0),
        COMPLETED,
    )
    wire.script = [Reply(events=events)]
    answer = await ask(provider)
    assert (answer.text, answer.calls) == ("Hi.", (THE_CALL, ToolRequest("echo", {}, "c2")))


async def test_items_may_be_known_by_id(wire: WireServer, provider: Responses) -> None:
    """Without an index, the item's id tells whose fragment it is."""
    begun = {**CALL, "arguments": "", "id": "fc_1"}
    events = (added(begun), fragment('{"text": ', item_id="fc_1"), fragment('"x"}', item_id="fc_1"), COMPLETED)
    wire.script = [Reply(events=events)]
    assert (await ask(provider)).calls == (THE_CALL,)


async def test_arguments_may_be_an_object(wire: WireServer, provider: Responses) -> None:
    """Some servers do not put the arguments into a string, and give no id but the item's."""
    item = {"type": "function_call", "id": "c1", "name": "echo", "arguments": {"text": "x"}}
    wire.script = [Reply(events=(done(item), COMPLETED))]
    assert (await ask(provider)).calls == (THE_CALL,)


async def test_a_refusal_is_text(wire: WireServer, provider: Responses) -> None:
    """A model that declines says so in the answer."""
    item = {"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    events = (
        {"type": "response.refusal.delta", "delta": "I cannot.", "output_index": 0},
        done(item, output_index=0),
        COMPLETED,
    )
    wire.script = [Reply(events=events)]
    pieces, answer = await collect(provider, request(provider, HELLO))
    assert pieces == ["I cannot."]
    assert answer.text == "I cannot."


async def test_two_messages_stand_apart(wire: WireServer, provider: Responses) -> None:
    """What streams is what the answer holds, also where the model speaks twice."""
    events = (
        text("One.", output_index=0),
        text("Two.", output_index=1),
        text(" Still two.", output_index=1),
        COMPLETED,
    )
    wire.script = [Reply(events=events)]
    pieces, answer = await collect(provider, request(provider, HELLO))
    assert "".join(pieces) == answer.text == "One.\n\nTwo. Still two."


@pytest.mark.parametrize(
    ("events", "reasoning"),
    [
        (
            [
                {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "On"},
                {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "e."},
                {
                    "type": "response.reasoning_summary_text.delta",
                    "output_index": 0,
                    "summary_index": 1,
                    "delta": "Two.",
                },
            ],
            "One.\n\nTwo.",
        ),
        ([{"type": "response.reasoning_text.delta", "output_index": 0, "delta": "Hm."}], "Hm."),
        (
            [
                done(
                    {
                        "type": "reasoning",
                        "summary": [{"type": "summary_text", "text": "Short."}],
                        "content": [{"type": "reasoning_text", "text": "Long."}],
                    },
                    output_index=0,
                )
            ],
            "Short.",
        ),
        (
            [
                done(
                    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Long."}]},
                    output_index=0,
                )
            ],
            "Long.",
        ),
    ],
)
async def test_what_is_told_of_reasoning(
    wire: WireServer, provider: Responses, events: list[Event], reasoning: str
) -> None:
    """Its summary, or of an open model the reasoning itself; never a part of the text."""
    wire.script = [Reply(events=(*events, text("Hi.", output_index=1), COMPLETED))]
    answer = await ask(provider)
    assert (answer.text, answer.reasoning) == ("Hi.", reasoning)


async def test_places_between_reasoning_are_kept(wire: WireServer, provider: Responses) -> None:
    """Reasoning between text and calls goes back in its place, and a message with its phase."""
    first, second = ({"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": "x"} for n in (1, 2))
    message = {**MESSAGE, "phase": "commentary"}
    output = [first, message, second, CALL]
    wire.script = [Reply(events=({"type": "response.completed", "response": {"output": output}},))]
    answer = await ask(provider)
    assert answer.items == (first, {"type": "message", "phase": "commentary"}, second, {"type": "function_call"})


CUT_HERE: Event = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}


def completed(*output: Event, **more: JSON) -> Event:
    return {"type": "response.completed", "response": {"model": "m", "output": list(output), **more}}


async def test_what_the_response_says_of_itself_counts(wire: WireServer, provider: Responses) -> None:
    """vLLM ends a cut answer, and one that failed, with `response.completed`."""
    half = {**CALL, "status": "completed"}
    wire.script = [
        Reply(events=(completed(MESSAGE, **CUT_HERE),)),
        Reply(events=(completed(MESSAGE, half, **CUT_HERE),)),
        Reply(events=(completed(half, MESSAGE, **CUT_HERE),)),
        Reply(events=(completed(MESSAGE, status="failed", error={"code": "server_error", "message": "Oh."}),)),
        Reply(events=({"type": "response.cancelled", "response": {}},)),
    ]
    answer = await ask(provider)
    assert (answer.text, answer.finish) == ("Hi.", "length")
    (call,) = (await ask(provider)).calls
    assert call == ToolRequest("echo", {}, "c1", raw="[cut off at the model's output limit] " + CALL["arguments"])
    assert (await ask(provider)).calls == (THE_CALL,), "it was cut in what was said after the call"
    for message in ("Oh.", "The model failed."):
        error = await refusal(provider)
        assert (error.code, error.retryable, error.message) == ("server_error", True, message)


@pytest.mark.parametrize("event", [[], "text", 7, {}, {"type": None}, {"type": "response.new_in_2030", "x": 1}])
async def test_unknown_events_are_passed_over(wire: WireServer, provider: Responses, event: JSON) -> None:
    """A new kind of event does no harm."""
    wire.script = [Reply(events=(text("Hi.", output_index=0), event, COMPLETED))]
    assert (await ask(provider)).text == "Hi."


async def test_odd_values_do_no_harm(wire: WireServer, provider: Responses) -> None:
    """Fields of the wrong type count as missing."""
    response = {"output": [None, {"type": "message", "content": None}, MESSAGE], "usage": [], "model": 5}
    events = (text(None, output_index="zero"), {"type": "response.completed", "response": response})  # type: ignore[arg-type]
    wire.script = [Reply(events=events)]
    answer = await ask(provider)
    assert (answer.text, answer.usage, answer.model) == ("Hi.", {}, "")
