"""Chat Completions: what goes out, and servers that speak it roughly."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agents.engine.interfaces.messages import AssistantMessage, CallRequest, ResultMessage, UserMessage
from agents.engine.interfaces.provider import ToolRequest
from agents.engine.ledger import JSON
from agents.providers.chat.protocol import Chat
from agents.providers.common import server
from agents.providers.common.server import ModelServer
from tests.providers.support import ECHO, HELLO, KEY, MODELS, ask, collect, refusal, request
from tests.wire.script import Reply
from tests.wire.server import WireServer

Chunk = dict[str, Any]

ROUND = (
    AssistantMessage("I look.", (CallRequest("c1", "echo", {"b": 1, "a": "ä"}),)),
    ResultMessage("c1", "echo", "ä\n"),
)
X = ToolRequest("echo", {"text": "x"}, "c1")
Y = ToolRequest("echo", {"text": "y"}, "c2")


@pytest.fixture
async def provider(wire: WireServer) -> AsyncIterator[Chat]:
    provider = Chat(ModelServer(KEY, wire.url, models=MODELS, read_seconds=5))
    yield provider
    await provider.aclose()


def delta(finish: str | None = None, /, **said: JSON) -> Chunk:
    return {"model": "m", "choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def piece(arguments: JSON, name: str | None = None, **where: JSON) -> Chunk:
    """A chunk with one fragment of a call."""
    function = {"arguments": arguments} | ({"name": name} if name is not None else {})
    return delta(tool_calls=[{**where, "function": function}])


STOP, CALLED = delta("stop"), delta("tool_calls")
USAGE: Chunk = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}


async def test_the_whole_request(wire: WireServer, provider: Chat) -> None:
    """Streaming with counts, the system message first, tools nested (S20)."""
    wire.script = [Reply("Yes.")]
    await ask(provider, HELLO, ROUND)
    function = {"name": "echo", "description": "Say it again.", "parameters": ECHO.schema}
    called = {"id": "c1", "type": "function", "function": {"name": "echo", "arguments": '{"a":"ä","b":1}'}}
    assert wire.requests[0].body == {
        "model": "small-model",
        "tools": [{"type": "function", "function": function}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": "You are a test."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "I look.", "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "c1", "content": "ä\n"},
        ],
    }


async def test_without_tools_nothing_is_said_of_tools(wire: WireServer, provider: Chat) -> None:
    """An empty list of tools is refused, so there is none; nor is there an empty system message."""
    wire.script = [Reply("Yes.")]
    await collect(provider, request(provider, HELLO, tools=(), system=""))
    assert wire.requests[0].body.keys() == {"model", "stream", "stream_options", "messages"}
    assert len(wire.requests[0].body["messages"]) == 1


async def test_the_history_goes_out_unchanged(wire: WireServer, provider: Chat) -> None:
    """The bytes of each round, as they were given, at the end of the body: nothing is parsed or written again."""
    wire.script = [Reply("Yes.")]
    odd = b'{"role" :"user",  "content": "\\u00e4 1e400"}'
    asked = request(provider, ROUND, tools=())
    await collect(provider, type(asked)("normal", "", (), [odd, *asked.history]))
    assert wire.requests[0].raw.endswith(b'"messages":[' + odd + b"," + asked.history[0] + b"]}")


def test_notes_stand_below_what_was_said(provider: Chat) -> None:
    """As one text: not every server reads a content in parts."""
    item = json.loads(provider.encode([UserMessage("Read it.", ("[Attached: a.txt]",))]))
    assert item == {"role": "user", "content": "Read it.\n\n[Attached: a.txt]"}


@pytest.mark.parametrize(
    ("chunks", "calls"),
    [
        pytest.param(
            [
                piece("", "echo", index=0, id="c1"),
                piece("", "echo", index=1, id="c2"),
                piece('{"text"', index=0),
                piece('{"text": ', index=1),
                piece(': "x"}', index=0),
                piece('"y"}', index=1),
            ],
            (X, Y),
            id="fragments side by side, by index",
        ),
        pytest.param(
            [piece('{"text": "x"}', "echo", id="c1"), piece('{"text": "y"}', "echo", id="c2")],
            (X, Y),
            id="no index, each whole",
        ),
        pytest.param(
            [piece('{"text": ', "echo", id="c1"), piece('"x"}'), piece("", "echo", id="c2"), piece('{"text": "y"}')],
            (X, Y),
            id="no index, in fragments",
        ),
        pytest.param(
            [
                piece('{"text": "x"}', "echo", index=0, id="c1"),
                piece('{"text":', "echo", index=0, id="c2"),
                piece('"y"}', index=0),
            ],
            (X, Y),
            id="the same index for all",
        ),
        pytest.param(
            [piece("", "echo", index=0, id="c1"), piece('{"text": "y"}', "echo", index=0, id="c2")],
            (ToolRequest("echo", {}, "c1"), Y),
            id="the same index for all, the first without arguments",
        ),
        pytest.param(
            [piece('{"text": ', "echo", index=0, id="c1"), piece('"x"}', "echo", index=0, id="c1")],
            (X,),
            id="id and name in every fragment",
        ),
        pytest.param(
            [piece('{"text": ', "echo", index=0, id="c1"), piece('"x"}', index=0, id="c9")],
            (X,),
            id="a new id in every fragment",
        ),
        pytest.param([piece("", "ec", index=0, id="c1"), piece('{"text": "x"}', "ho", index=0)], (X,), id="half names"),
        pytest.param([piece({"text": "x"}, "echo", index=0, id="c1")], (X,), id="an object for arguments"),
        pytest.param(
            [piece('{"text": "x"}', "echo"), piece('{"text": "y"}', "echo")],
            (ToolRequest("echo", {"text": "x"}), ToolRequest("echo", {"text": "y"})),
            id="neither index nor id",
        ),
        pytest.param(
            [piece("", "echo", index=0, id="c1"), piece('{"text": ', index=0), piece("oops", index=0)],
            (ToolRequest("echo", {}, "c1", raw='{"text": oops'),),
            id="no JSON",
        ),
        pytest.param(
            [
                piece("", "echo", index="0", id="c1"),
                piece("", "echo", index="1", id="c2"),
                piece('{"text": "x"}', index="0"),
                piece('{"text": "y"}', index="1"),
            ],
            (X, Y),
            id="the index as text",
        ),
        pytest.param(
            [piece("", "echo"), piece("", "other")],
            (ToolRequest("echo", {}), ToolRequest("other", {})),
            id="neither index, id nor arguments",
        ),
        pytest.param([piece(None, "echo", index=0, id="c1")], (ToolRequest("echo", {}, "c1"),), id="no arguments"),
    ],
)
async def test_calls_in_fragments(
    wire: WireServer, provider: Chat, chunks: list[Chunk], calls: tuple[ToolRequest, ...]
) -> None:
    """However a server tells them, each call comes once, with its own arguments (S27, S28)."""
    wire.script = [Reply(events=(*chunks, CALLED, USAGE))]
    assert (await ask(provider)).calls == calls


async def test_a_call_cut_in_its_middle_never_runs(wire: WireServer, provider: Chat) -> None:
    """Even if its arguments happen to parse: it comes as one that cannot be read. The one before it was whole."""
    chunks = (piece('{"text": "x"}', "echo", index=0, id="c1"), piece("{}", "echo", index=1, id="c2"))
    wire.script = [Reply(events=(*chunks, delta("length"))), Reply(events=(chunks[1], delta("content_filter")))]
    half = ToolRequest("echo", {}, "c2", raw="[cut off at the model's output limit] {}")
    answer = await ask(provider)
    assert (answer.calls, answer.finish) == ((X, half), "length")
    filtered = ToolRequest("echo", {}, "c2", raw="[cut off by the model's content filter] {}")
    assert (await ask(provider)).calls == (filtered,)


async def test_a_call_cut_before_its_name_is_none(wire: WireServer, provider: Chat) -> None:
    """Nothing could be said about it."""
    wire.script = [Reply(events=(piece("", index=0, id="c1"), delta("length")))]
    assert (await refusal(provider)).code == "incomplete"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_reasoning_is_no_text(wire: WireServer, provider: Chat, name: str) -> None:
    """Open models' servers give it beside the content, under one of two names."""
    wire.script = [Reply(events=(delta(**{name: "Let me "}), delta(**{name: "think."}), delta(content="Hi."), STOP))]
    pieces, answer = await collect(provider, request(provider, HELLO))
    assert (pieces, answer.text, answer.reasoning) == (["Hi."], "Hi.", "Let me think.")


async def test_reasoning_content_goes_back_to_who_gave_it(wire: WireServer, provider: Chat) -> None:
    """With the calls that it led to: such servers refuse the history without it."""
    wire.script = [Reply(events=(delta(reasoning_content="Hm."), piece('{"text":"x"}', "echo", id="c1"), CALLED))]
    answer = await ask(provider)
    said = AssistantMessage("", (CallRequest("c1", "echo", {"text": "x"}),), answer.items)
    assert json.loads(provider.encode([said]))["reasoning_content"] == "Hm."
    other = AssistantMessage("Hi.", (), ({"type": "reasoning", "encrypted_content": "x"}, "odd"))
    assert json.loads(provider.encode([other])) == {"role": "assistant", "content": "Hi."}


def test_some_models_want_reasoning_in_every_answer() -> None:
    """An empty one is enough, for answers of earlier turns."""
    provider = Chat(ModelServer(models={"normal": "deepseek-v4-pro"}))
    assert json.loads(provider.encode([AssistantMessage("Hi.")]))["reasoning_content"] == ""


async def test_a_refusal_is_text(wire: WireServer, provider: Chat) -> None:
    """A model that declines says so in the answer."""
    wire.script = [Reply(events=(delta(refusal="I "), delta(refusal="cannot."), STOP))]
    assert (await ask(provider)).text == "I cannot."


async def test_content_in_parts(wire: WireServer, provider: Chat) -> None:
    """Some servers give the text in parts, beside parts of another kind."""
    parts = [{"type": "thinking", "text": "Hm."}, {"type": "text", "text": "Hi."}]
    wire.script = [Reply(events=(delta(content=parts), STOP))]
    assert (await ask(provider)).text == "Hi."


@pytest.mark.parametrize(
    ("chunks", "usage"),
    [
        ((STOP, USAGE), {"input_tokens": 9, "output_tokens": 2}),
        (({**STOP, "usage": USAGE["usage"]},), {"input_tokens": 9, "output_tokens": 2}),
        ((STOP,), {}),
        ((STOP, {"choices": [], "usage": None}), {}),
        (
            (STOP, {"choices": [], "usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 4}}),
            {"input_tokens": 9, "cached_tokens": 4},
        ),
    ],
)
async def test_where_the_counts_come(
    wire: WireServer, provider: Chat, chunks: tuple[Chunk, ...], usage: dict[str, int]
) -> None:
    """After the end, with it, or never: some servers do not know `include_usage` (S39)."""
    wire.script = [Reply(events=(delta(content="Hi."), *chunks))]
    found = (await ask(provider)).usage
    assert {name: count for name, count in found.items() if count} == usage


async def test_the_answer_is_whole_when_the_model_says_so(wire: WireServer, provider: Chat) -> None:
    """What breaks after that does not matter; without it there is no answer, even where the server says it is done."""
    wire.script = [
        Reply(events=(delta(content="Hi."), STOP, USAGE), break_after=2),
        Reply(events=(delta(content="Hi."), USAGE)),
    ]
    assert (await ask(provider)).text == "Hi."
    assert (await refusal(provider)).code == "stream_broken"


async def test_a_server_that_holds_the_line_after_the_end(
    wire: WireServer, provider: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not waited for longer than its counts may take."""
    monkeypatch.setattr(server, "TAIL_SECONDS", 0.05)
    wire.script = [Reply(events=(delta("stop", content="Hi."), USAGE), pause_seconds=60)]
    begun = time.monotonic()
    assert (await ask(provider)).text == "Hi."
    assert time.monotonic() - begun < 4, "the longest silence of this provider is 5 seconds"


@pytest.mark.parametrize(
    "chunk",
    [
        {"object": "error", "message": "Oh.", "code": 400},
        {"choices": [{"finish_reason": "error", "delta": {}, "error": {"message": "Oh.", "code": 400}}]},
    ],
)
async def test_errors_in_other_shapes(wire: WireServer, provider: Chat, chunk: Chunk) -> None:
    """As vLLM and OpenRouter give them."""
    wire.script = [Reply(events=(delta(content="Hi."), chunk))]
    error = await refusal(provider)
    assert (error.code, error.message) == ("refused", "Oh.")


async def test_events_without_data_are_passed_over(wire: WireServer, provider: Chat) -> None:
    """They keep a connection alive, and are no JSON."""
    alive: tuple[JSON, ...] = (b"data:\n\n", b"data: \n\n", b": ping\n\n", b"event: ping\n\n")
    wire.script = [Reply(events=(alive[0], delta(content="Hi."), *alive, STOP))]
    assert (await ask(provider)).text == "Hi."


@pytest.mark.parametrize("chunk", [[], "text", 7, {}, {"choices": None}, {"choices": [None]}, {"choices": [{}]}])
async def test_odd_chunks_are_passed_over(wire: WireServer, provider: Chat, chunk: JSON) -> None:
    """Fields of the wrong type count as missing."""
    odd = delta(content=5, tool_calls=[None, {}], reasoning={"a": 1})
    wire.script = [Reply(events=(delta(content="Hi."), chunk, STOP)), Reply(events=(odd, delta(content="Hi."), STOP))]
    for _ in range(2):
        answer = await ask(provider)
        assert (answer.text, answer.calls, answer.reasoning) == ("Hi.", (), "")
