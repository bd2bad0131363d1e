"""What comes back from a model."""

from __future__ import annotations

import pytest

from agents.engine.interfaces.messages import AssistantMessage, CallRequest, ResultMessage
from agents.engine.interfaces.provider import ToolRequest
from agents.providers.responses.protocol import Responses
from tests.providers.support import HELLO, ask, collect, refusal, request
from tests.wire.script import Call, Refusal, Reply
from tests.wire.server import WireServer

LONG = "Twenty-six letters and some more, in several pieces: äöü 漢字 🙂."


async def test_text_streams_and_comes_whole(wire: WireServer, provider: Responses) -> None:
    """The pieces add up to the answer's text; the turn may end with it (S24)."""
    wire.script = [Reply(LONG)]
    pieces, answer = await collect(provider, request(provider, HELLO))
    assert len(pieces) > 2
    assert "".join(pieces) == answer.text == LONG
    assert (answer.calls, answer.finish, answer.model, answer.items) == ((), "stop", "small-model", ())


async def test_the_first_piece_comes_before_the_last_is_made(wire: WireServer, provider: Responses) -> None:
    """Text is shown while the model still speaks."""
    wire.script = [Reply(LONG, pause_seconds=0.005), Reply(LONG)]
    slow = provider.ask(request(provider, HELLO))
    await anext(slow)
    _, other = await collect(provider, request(provider, HELLO))
    assert other.text == LONG
    assert len([event async for event in slow]) > 2


async def test_calls_come_side_by_side_with_text(wire: WireServer, provider: Responses) -> None:
    """Text and several calls in one answer, in call order (R10)."""
    calls = (Call("echo", {"text": "a" * 40}, "c1"), Call("echo", {}, "c2"), Call("other", {"n": [1, 2.5, None]}))
    wire.script = [Reply("Three things.", calls)]
    answer = await ask(provider)
    assert answer.text == "Three things."
    assert answer.calls[:2] == (ToolRequest("echo", {"text": "a" * 40}, "c1"), ToolRequest("echo", {}, "c2"))
    assert answer.calls[2].arguments == {"n": [1, 2.5, None]}
    assert answer.calls[2].call_id.startswith("call_")


@pytest.mark.parametrize(
    "arguments", ['{"a": 1', "[1]", "null", '"text"', "rm -rf", '{"a": NaN}', '{"a": 1e999}', "[" * 100_000]
)
async def test_arguments_that_are_no_object_are_kept_as_text(
    wire: WireServer, provider: Responses, arguments: str
) -> None:
    """Arguments that do not parse are an error the model can see, not a crash (S27)."""
    wire.script = [Reply(calls=(Call("echo", arguments, "c1"),))]
    answer = await ask(provider)
    assert answer.calls == (ToolRequest("echo", {}, "c1", raw=arguments),)


async def test_no_arguments_are_an_empty_object(wire: WireServer, provider: Responses) -> None:
    """Some servers send nothing at all for a tool that takes nothing."""
    wire.script = [Reply(calls=(Call("echo", " ", "c1"),))]
    assert (await ask(provider)).calls == (ToolRequest("echo", {}, "c1"),)


async def test_usage_is_counted(wire: WireServer, provider: Responses) -> None:
    """Tokens in, cached, out and of reasoning (S39)."""
    usage = {"input_tokens": 100, "cached_tokens": 60, "output_tokens": 20, "reasoning_tokens": 5}
    wire.script = [Reply("Yes.", usage=usage)]
    assert (await ask(provider)).usage == usage


async def test_a_cut_answer_says_so(wire: WireServer, provider: Responses) -> None:
    """An answer that came to its limit has the finish `length`."""
    wire.script = [Reply("Half of this.", incomplete="max_output_tokens")]
    answer = await ask(provider)
    assert (answer.text, answer.finish) == ("Half o", "length")


async def test_a_filtered_answer_says_so(wire: WireServer, provider: Responses) -> None:
    """An answer that was stopped by the provider's filter has the finish `content_filter`."""
    wire.script = [Reply("Half of this.", incomplete="content_filter")]
    assert (await ask(provider)).finish == "content_filter"


async def test_a_call_cut_in_its_middle_never_runs(wire: WireServer, provider: Responses) -> None:
    """Even if its arguments happen to parse: it comes as one that cannot be read."""
    calls = (Call("echo", {"text": "x"}, "c1"), Call("echo", "{}  ", "c2"))
    wire.script = [Reply("Two.", calls, incomplete="max_output_tokens")]
    answer = await ask(provider)
    half = ToolRequest("echo", {}, "c2", raw="[cut off at the model's output limit] {}")
    assert answer.calls == (ToolRequest("echo", {"text": "x"}, "c1"), half)


async def test_reasoning_goes_round(wire: WireServer, provider: Responses) -> None:
    """The provider's opaque items are kept, and sent back as they came."""
    wire.script = [Reply("I looked.", (Call("echo", {"text": "x"}, "c1"),), reasoning="Think first."), Reply("Done.")]
    asked = request(provider, HELLO, tier="high")
    _, answer = await collect(provider, asked)
    assert wire.requests[0].body["include"] == ["reasoning.encrypted_content"]
    assert wire.requests[0].body["reasoning"] == {"summary": "auto"}
    assert answer.reasoning == "Think first."
    reasoning = answer.items[0]
    assert reasoning["summary"] == [{"type": "summary_text", "text": "Think first."}]
    assert reasoning["encrypted_content"]

    said = AssistantMessage(answer.text, (CallRequest("c1", "echo", {"text": "x"}),), answer.items)
    await ask(provider, HELLO, (said, ResultMessage("c1", "echo", "x")))
    sent = wire.requests[1].body["input"]
    assert sent[1] == reasoning
    assert [item["type"] for item in sent[2:]] == ["message", "function_call", "function_call_output"]


async def test_models_that_do_not_reason_are_not_asked_to(wire: WireServer, provider: Responses) -> None:
    """Such models refuse a request that asks for encrypted reasoning."""
    wire.script = [Reply("Yes.")]
    await ask(provider)
    assert not {"include", "reasoning"} & wire.requests[0].body.keys()


async def test_who_may_not_have_summaries_is_not_refused_for_ever(wire: WireServer, provider: Responses) -> None:
    """The attempt fails in passing, and the next ones do without; other refusals last."""
    why = "Your organization must be verified to generate reasoning summaries. Please go to: ..."
    wire.script = [Reply(refusal=Refusal(400, "unsupported_value", why, param="reasoning.summary")), Reply("Yes.")]
    asked = request(provider, HELLO, tier="high")
    error = await refusal(provider, asked)
    assert (error.retryable, error.wait_seconds) == (True, 0)
    _, answer = await collect(provider, asked)
    assert answer.text == "Yes."
    assert "reasoning" not in wire.requests[1].body
    assert wire.requests[1].body["include"] == ["reasoning.encrypted_content"]
    wire.script = [Reply(refusal=Refusal(400, "unsupported_value", why))]
    assert not (await refusal(provider, asked)).retryable
