"""Single answers over real HTTP, the same in every protocol."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from agents.engine.errors import ProviderError
from agents.engine.interfaces.messages import AssistantMessage
from agents.engine.interfaces.provider import Answer, Provider, TextDelta
from agents.providers.common.server import ModelServer
from tests.providers.support import HELLO, KEY, MODELS, PROTOCOLS, asks, collect, refusal, request
from tests.wire.script import Call, Refusal, Reply
from tests.wire.server import WireServer

LONG = "Twenty-six letters and some more, in several pieces: äöü 漢字 🙂."
ARGUMENTS = {"text": "arguments long enough for more than one piece of them"}


async def test_text_streams_and_comes_whole(wire: WireServer, speaker: Provider) -> None:
    """The pieces add up to the answer's text (R9)."""
    wire.script = [Reply(LONG)]
    pieces, answer = await collect(speaker, request(speaker, HELLO))
    assert len(pieces) > 2
    assert "".join(pieces) == answer.text == LONG
    assert (answer.calls, answer.finish, answer.model, answer.unreadable) == ((), "stop", "small-model", "")


async def test_the_first_piece_comes_before_the_last_is_made(wire: WireServer, speaker: Provider) -> None:
    """Text is shown while the model still speaks."""
    wire.script = [Reply(LONG, pause_seconds=0.005), Reply(LONG)]
    slow = speaker.ask(request(speaker, HELLO))
    await anext(slow)
    _, other = await collect(speaker, request(speaker, HELLO))
    assert other.text == LONG
    assert len([event async for event in slow]) > 2


async def test_a_call_with_text_before_it(wire: WireServer, speaker: Provider, protocol: str) -> None:
    """The text streams, the call comes whole; nothing of the call is ever shown as text (R9, R10)."""
    wire.script = [asks(protocol, LONG, Call("echo", ARGUMENTS))]
    pieces, answer = await collect(speaker, request(speaker, HELLO))
    (call,) = answer.calls
    assert (call.name, call.arguments, call.raw, call.terminate) == ("echo", ARGUMENTS, None, False)
    assert "".join(pieces) == answer.text == LONG


async def test_wherever_a_stream_breaks_it_is_no_answer(wire: WireServer, protocol: str, speaker: Provider) -> None:
    """After any number of events: broken, and to be asked again; or whole, once the model has said so (T-31)."""
    whole = asks(protocol, "I look.", Call("echo", ARGUMENTS))
    outcomes: list[str] = []
    for count in range(40):
        wire.script = [Reply(whole.text, whole.calls, break_after=count, break_how="end" if count % 2 else "cut")]
        outcomes.append(await _outcome(speaker))
    broken = outcomes.index("whole")
    assert broken > 8
    assert set(outcomes[:broken]) == {"stream_broken True"}
    assert set(outcomes[broken:]) == {"whole"}


async def _outcome(speaker: Provider) -> str:
    try:
        _, answer = await collect(speaker, request(speaker, HELLO))
    except ProviderError as error:
        return f"{error.code} {error.retryable}"
    assert [call.arguments for call in answer.calls] == [ARGUMENTS]
    return "whole"


@pytest.mark.parametrize(
    ("status", "code", "expected", "retryable"),
    [
        (429, "rate_limit_exceeded", "rate_limited", True),
        (429, "insufficient_quota", "insufficient_quota", False),
        (500, "", "server_error", True),
        (401, "invalid_api_key", "key_refused", False),
        (400, "context_length_exceeded", "context_overflow", False),
    ],
)
async def test_http_errors(
    wire: WireServer, speaker: Provider, *, status: int, code: str, expected: str, retryable: bool
) -> None:
    """Told in the server's words, without the key, in the error and in its traceback; asked once (T-57)."""
    wire.script = [Reply(refusal=Refusal(status, code, f"Because of {KEY}.", {"Retry-After": "7"}))]
    error = await refusal(speaker)
    assert (error.code, error.retryable, error.wait_seconds) == (expected, retryable, 7 if retryable else None)
    assert KEY not in "".join(traceback.format_exception(error))
    assert "[key]" in error.message
    assert len(wire.requests) == 1


@pytest.mark.parametrize(
    ("event", "expected", "retryable"),
    [
        ({"error": {"message": "Oh."}}, "server_error", True),
        ({"error": {"message": "Oh.", "code": 429}}, "rate_limited", True),
        ({"error": {"message": "Oh.", "code": 400}}, "refused", False),
        ({"error": {"message": "Oh.", "code": "context_length_exceeded"}}, "context_overflow", False),
    ],
)
async def test_errors_inside_the_stream(
    wire: WireServer, speaker: Provider, event: dict[str, Any], expected: str, retryable: bool
) -> None:
    """A server that fails after it began to answer."""
    wire.script = [Reply(events=({}, event))]
    error = await refusal(speaker)
    assert (error.code, error.retryable, error.message) == (expected, retryable, "Oh.")


async def test_an_empty_answer_is_none(wire: WireServer, speaker: Provider) -> None:
    """Neither text nor calls."""
    wire.script = [Reply(), Reply(" \n")]
    for _ in range(2):
        assert (await refusal(speaker)).code == "empty_answer"


async def test_a_cut_answer_says_so(wire: WireServer, speaker: Provider) -> None:
    """An answer that came to its limit has the finish `length`; one that was filtered, its own."""
    wire.script = [Reply("Half of this.", incomplete=why) for why in ("max_output_tokens", "content_filter")]
    found = [(await collect(speaker, request(speaker, HELLO)))[1] for _ in range(2)]
    assert [(answer.text, answer.finish) for answer in found] == [("Half o", "length"), ("Half o", "content_filter")]


async def test_an_answer_cut_before_its_first_word_is_none(wire: WireServer, speaker: Provider) -> None:
    """All of the limit went into reasoning: the same request would end the same way."""
    wire.script = [Reply("x", incomplete="max_output_tokens")]
    error = await refusal(speaker)
    assert (error.code, error.retryable) == ("incomplete", False)


@pytest.mark.parametrize("reply", [Reply("Late.", delay_seconds=1), Reply(LONG, pause_seconds=1)])
async def test_silence_times_out(wire: WireServer, protocol: str, reply: Reply) -> None:
    """Before the answer, and in its middle."""
    wire.script = [reply]
    provider: Provider = PROTOCOLS[protocol](ModelServer(KEY, wire.url, models=MODELS, read_seconds=0.05))
    error = await refusal(provider)
    assert (error.code, error.retryable) == ("timeout", True)
    await provider.aclose()


async def test_connections_are_used_again(wire: WireServer, speaker: Provider) -> None:
    """The end of a stream is read, so that the next request needs no new connection."""
    wire.script = [Reply("Yes.")] * 5
    for _ in range(5):
        await collect(speaker, request(speaker, HELLO))
    assert len({asked.client_port for asked in wire.requests}) == 1


async def test_closing_one_protocol_closes_all(wire: WireServer) -> None:
    """They share the connections of one server."""
    wire.script = [Reply("Yes.")] * 6
    server = ModelServer(KEY, wire.url, models=MODELS)
    speakers: list[Provider] = [make(server) for make in PROTOCOLS.values()]
    for each in [*speakers, *speakers]:
        await collect(each, request(each, HELLO))
        if each is speakers[-1]:
            await speakers[0].aclose()
    ports = [asked.client_port for asked in wire.requests]
    assert len(set(ports[:3])) == len(set(ports[3:])) == 1
    assert ports[0] != ports[3]


async def test_leaving_an_answer_closes_its_connection(wire: WireServer, speaker: Provider) -> None:
    """A turn that is stopped does not go on paying for words."""
    wire.script = [Reply(LONG, pause_seconds=0.005), Reply(LONG)]
    slow = speaker.ask(request(speaker, HELLO))
    assert isinstance(await anext(slow), TextDelta)
    await slow.aclose()
    _, answer = await collect(speaker, request(speaker, HELLO))
    assert isinstance(answer, Answer)
    assert len({asked.client_port for asked in wire.requests}) == 2


async def test_a_later_request_begins_with_the_earlier_one(wire: WireServer, speaker: Provider) -> None:
    """Providers cache by prefix: all but the closing brackets stands at the front of the next request."""
    wire.script = [Reply("Yes.")] * 2
    await collect(speaker, request(speaker, HELLO))
    await collect(speaker, request(speaker, HELLO, (AssistantMessage("Hi."), *HELLO)))
    first, second = (asked.raw for asked in wire.requests)
    assert second.startswith(first[:-2])
