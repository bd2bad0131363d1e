"""Both APIs of the demo model, as the real SDK sees them: one script, one set of rules, the same answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from openai import APIStatusError, AsyncOpenAI, BadRequestError

from agents.engine.ledger import JSON
from agents.providers.demo.rules import answer
from tests.providers.support import KEY
from tests.wire.script import ByRound, Call, Refusal, Reply
from tests.wire.server import WireServer

Item = dict[str, Any]


@dataclass(frozen=True)
class Heard:
    """An answer, whichever way it came: text, calls as (id, name, arguments), tokens as (in, out), why it ended."""

    text: str
    calls: tuple[tuple[str, str, str], ...]
    usage: tuple[int, int]
    cut: bool


@dataclass(frozen=True)
class Tool:
    name: str
    schema: dict[str, JSON]


Ask = Callable[..., Awaitable[Heard]]
ECHO = Tool("echo", {"type": "object", "properties": {"text": {"type": "string"}}})
TWO = (Call("echo", {"text": "x" * 30}, "c1"), Call("echo", {"text": "y"}, "c2"))


@pytest.fixture
async def client(wire: WireServer) -> AsyncIterator[AsyncOpenAI]:
    """The SDK, refusing whatever does not fit its own types."""
    strict = AsyncOpenAI(api_key=KEY, base_url=wire.url, max_retries=0, _strict_response_validation=True)
    async with strict as client:
        yield client


@pytest.fixture(params=["responses", "responses streamed", "chat", "chat streamed"])
def ask(request: pytest.FixtureRequest, client: AsyncOpenAI) -> Ask:
    """Ask with a history in the shape of the Responses API, and tools: in each of the four ways."""
    way = {
        "responses": responses,
        "responses streamed": responses_streamed,
        "chat": chat,
        "chat streamed": chat_streamed,
    }[request.param]

    async def ask(history: list[Item], *tools: Tool) -> Heard:
        return await way(client, history, tools or (ECHO,))

    return ask


async def responses(client: AsyncOpenAI, history: list[Item], tools: tuple[Tool, ...]) -> Heard:
    whole = await client.responses.create(**_responses_body(history, tools))
    return _of_response(whole)


async def responses_streamed(client: AsyncOpenAI, history: list[Item], tools: tuple[Tool, ...]) -> Heard:
    async with await client.responses.create(**_responses_body(history, tools), stream=True) as stream:
        events: list[Any] = [event async for event in stream]
    said = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    heard = _of_response(events[-1].response)
    assert said == heard.text
    return heard


async def chat(client: AsyncOpenAI, history: list[Item], tools: tuple[Tool, ...]) -> Heard:
    whole = await client.chat.completions.create(**_chat_body(history, tools))
    assert whole.object == "chat.completion"
    return _of_completion(whole)


async def chat_streamed(client: AsyncOpenAI, history: list[Item], tools: tuple[Tool, ...]) -> Heard:
    """Put together by hand, as other clients do it."""
    body = _chat_body(history, tools)
    text, finished, usage = "", [], None
    calls: dict[int, list[str]] = {}
    async with await client.chat.completions.create(
        **body, stream=True, stream_options={"include_usage": True}
    ) as stream:
        async for chunk in stream:
            assert (chunk.object, usage) == ("chat.completion.chunk", None)
            usage = chunk.usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finished += [choice.finish_reason] if choice.finish_reason else []
                for piece in choice.delta.tool_calls or ():
                    assert piece.function
                    call = calls.setdefault(piece.index, [piece.id or "", piece.function.name or "", ""])
                    call[2] += piece.function.arguments or ""
    (reason,) = finished
    assert usage
    assert (reason == "tool_calls") == bool(calls) or reason == "length"
    heard = tuple((call[0], call[1], call[2]) for call in calls.values())
    return Heard(text, heard, (usage.prompt_tokens, usage.completion_tokens), reason == "length")


def _responses_body(history: list[Item], tools: tuple[Tool, ...]) -> Item:
    offered = [{"type": "function", "name": tool.name, "parameters": tool.schema, "strict": False} for tool in tools]
    return {"model": "m", "input": history, "tools": offered, "store": False}


def _chat_body(history: list[Item], tools: tuple[Tool, ...]) -> Item:
    """The same request, as somebody who only knows Chat Completions writes it."""
    messages: list[Item] = [{"role": "system", "content": "You are a test."}]
    for item in history:
        match item.get("type", "message"):
            case "function_call":
                function = {"name": item["name"], "arguments": item["arguments"]}
                call = {"id": item["call_id"], "type": "function", "function": function}
                if messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": None})
                messages[-1].setdefault("tool_calls", []).append(call)
            case "function_call_output":
                messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
            case _:
                parts = item["content"]
                content = parts if isinstance(parts, str) else [{"type": "text", "text": p["text"]} for p in parts]
                messages.append({"role": item["role"], "content": content})
    offered = [{"type": "function", "function": {"name": tool.name, "parameters": tool.schema}} for tool in tools]
    return {"model": "m", "messages": messages, "tools": offered}


def _of_response(whole: Any) -> Heard:
    calls = tuple((i.call_id, i.name, i.arguments) for i in whole.output if i.type == "function_call")
    used = (whole.usage.input_tokens, whole.usage.output_tokens)
    return Heard(whole.output_text, calls, used, whole.status == "incomplete")


def _of_completion(whole: Any) -> Heard:
    (choice,) = whole.choices
    calls = tuple((c.id, c.function.name, c.function.arguments) for c in choice.message.tool_calls or ())
    used = (whole.usage.prompt_tokens, whole.usage.completion_tokens)
    assert whole.usage.total_tokens == sum(used)
    assert (choice.finish_reason == "tool_calls") == bool(calls) or choice.finish_reason == "length"
    return Heard(choice.message.content or "", calls, used, choice.finish_reason == "length")


def user(text: str) -> Item:
    return {"role": "user", "content": text}


def after(heard: Heard, *outputs: str) -> list[Item]:
    """What was heard as it stands in the next request, with a result for each call."""
    called = [{"type": "function_call", "call_id": i, "name": n, "arguments": a} for i, n, a in heard.calls]
    results = [
        {"type": "function_call_output", "call_id": call["call_id"], "output": output}
        for call, output in zip(called, outputs, strict=True)
    ]
    said = [{"role": "assistant", "content": heard.text}] if heard.text else []
    return [*said, *called, *results]


async def test_text_calls_and_usage_are_the_same_in_every_way(wire: WireServer, ask: Ask) -> None:
    """Several calls in one answer, whole or in pieces."""
    wire.script = [Reply("A text in more than one piece.", TWO, usage={"input_tokens": 7, "output_tokens": 3})]
    heard = await ask([user("go")])
    assert heard.text == "A text in more than one piece."
    assert [(i, name, json.loads(arguments)) for i, name, arguments in heard.calls] == [
        (call.call_id, call.name, call.arguments) for call in TWO
    ]
    assert (heard.usage, heard.cut) == ((7, 3), False)


async def test_calls_without_text_and_text_without_calls(wire: WireServer, ask: Ask) -> None:
    """Each alone; calls that were given no id get one of their own."""
    wire.script = [Reply(calls=(Call("echo"), Call("echo"))), Reply("Only text.")]
    calls = await ask([user("go")])
    assert calls.text == ""
    assert len({call_id for call_id, _, _ in calls.calls}) == 2
    text = await ask([user("go")])
    assert (text.text, text.calls) == ("Only text.", ())
    assert all(count > 0 for count in text.usage), "made up from the lengths"


async def test_an_answer_may_be_cut(wire: WireServer, ask: Ask) -> None:
    """At its limit: half of it, and a sign."""
    wire.script = [Reply("A text of many words.", incomplete="max_output_tokens")]
    heard = await ask([user("go")])
    assert heard.cut
    assert "A text of many words.".startswith(heard.text)
    assert len(heard.text) == 10


async def test_a_script_counts_the_rounds_of_either(wire: WireServer, ask: Ask) -> None:
    """It reads one form of request: by what was said last, and by the batches since."""
    wire.script = ByRound({"go": [Reply("One.", TWO), Reply(calls=(Call("echo", {}, "c3"),)), Reply("Three.")]})
    history = [user("before"), {"role": "assistant", "content": "Yes."}, user("go")]
    for number, text in enumerate(["One.", "", "Three."]):
        heard = await ask(history)
        assert heard.text == text
        history += after(heard, *("x" for _ in heard.calls))
        assert len(heard.calls) == (2, 1, 0)[number]


async def test_the_rules_answer_either(wire: WireServer, ask: Ask) -> None:
    """From a request in plain words over two calls at once to what came of them."""
    wire.script = answer
    tools = [Tool(name, {"type": "object"}) for name in ("files_list", "shell_run")]
    history = [user("list the files and run date")]
    first = await ask(history, *tools)
    assert "not a language model" in first.text
    assert [(name, json.loads(arguments)) for _, name, arguments in first.calls] == [
        ("files_list", {"path": "."}),
        ("shell_run", {"command": "date"}),
    ]
    history += after(first, "a.md  3 B", "Error (rejected): Not now.")
    second = await ask(history, *tools)
    assert not second.calls
    assert "a.md  3 B" in second.text
    assert "“Not now.”" in second.text
    assert "not a language model" not in second.text


async def test_a_file_that_came_with_the_words(wire: WireServer, ask: Ask) -> None:
    """Content in parts is read by the rules in either API."""
    wire.script = answer
    note = "[Attached: a.txt, 3 bytes. It lies in the workspace as attached/a.txt.]"
    parts = [{"type": "input_text", "text": text} for text in ("read it", note)]
    heard = await ask([{"role": "user", "content": parts}], Tool("files_read", {"type": "object"}))
    assert [json.loads(arguments) for _, _, arguments in heard.calls] == [{"path": "attached/a.txt"}]


async def test_refusals_that_a_script_makes(wire: WireServer, ask: Ask) -> None:
    """With status, code and words."""
    wire.script = [Reply(refusal=Refusal(429, "rate_limit_exceeded", "Slow down."))]
    with pytest.raises(APIStatusError) as refused:
        await ask([user("go")])
    assert (refused.value.status_code, refused.value.code) == (429, "rate_limit_exceeded")


async def test_the_sdks_own_assembler_accepts_the_chunks(wire: WireServer, client: AsyncOpenAI) -> None:
    """Its `stream()` puts the pieces together, and tells when each call is whole."""
    wire.script = [Reply("A text in more than one piece.", TWO)]
    body = _chat_body([user("go")], (ECHO,))
    async with client.chat.completions.stream(**body) as stream:
        kinds = [event.type async for event in stream]
        whole = await stream.get_final_completion()
    assert kinds.count("tool_calls.function.arguments.done") == 2
    assert kinds.count("content.done") == 1
    assert whole.choices[0].message.content == "A text in more than one piece."
    calls = whole.choices[0].message.tool_calls
    assert calls is not None
    assert [json.loads(call.function.arguments) for call in calls] == [call.arguments for call in TWO]


async def test_the_chunks_on_the_wire(wire: WireServer) -> None:
    """The role first, the reason alone, then the usage where it is asked for, and the mark of the end."""
    wire.script = lambda _: Reply("Hi.")
    body = {"model": "m", "messages": [user("Hello")], "stream": True}
    async with httpx2.AsyncClient() as http:
        plain = (await http.post(f"{wire.url}/chat/completions", json=body)).text
        counted = (
            await http.post(f"{wire.url}/chat/completions", json=body | {"stream_options": {"include_usage": True}})
        ).text
    *lines, end = plain.removesuffix("\n\n").split("\n\n")
    assert end == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert [(chunk["choices"][0]["delta"], chunk["choices"][0]["finish_reason"]) for chunk in chunks] == [
        ({"role": "assistant", "content": "", "refusal": None}, None),
        ({"content": "Hi."}, None),
        ({}, "stop"),
    ]
    assert not any("usage" in chunk for chunk in chunks)
    assert len({chunk["id"] for chunk in chunks}) == 1
    *lines, last, end = counted.removesuffix("\n\n").split("\n\n")
    assert all(json.loads(line.removeprefix("data: "))["usage"] is None for line in lines)
    usage = json.loads(last.removeprefix("data: "))
    assert usage["choices"] == []
    assert usage["usage"]["total_tokens"] > 0


@pytest.mark.parametrize("how", ["cut", "end"])
async def test_a_stream_may_break(wire: WireServer, how: Any) -> None:
    """Without the mark of the end."""
    wire.script = [Reply("Hello there.", break_after=2, break_how=how)]
    body = {"model": "m", "messages": [user("Hello")], "stream": True}
    heard = b""
    try:
        async with (
            httpx2.AsyncClient() as http,
            http.stream("POST", f"{wire.url}/chat/completions", json=body) as stream,
        ):
            async for piece in stream.aiter_bytes():
                heard += piece
        broken = False
    except httpx2.RemoteProtocolError:
        broken = True
    assert broken == (how == "cut")
    assert heard.count(b"data: ") == 2
    assert b"[DONE]" not in heard


async def test_an_unsound_history_is_refused_over_the_wire(wire: WireServer, client: AsyncOpenAI) -> None:
    """As the real API does it: 400, with type, parameter and words that the SDK finds."""
    messages: Any = [user("Hello"), {"role": "tool", "tool_call_id": "c1", "content": "x"}]
    with pytest.raises(BadRequestError) as refused:
        await client.chat.completions.create(model="m", messages=messages)
    assert (refused.value.param, refused.value.code, refused.value.type) == (
        "messages.[1].role",
        None,
        "invalid_request_error",
    )
    assert "must be a response to a preceeding message with 'tool_calls'" in refused.value.message


async def test_other_addresses_are_not_found(wire: WireServer) -> None:
    """404, in the API's shape."""
    async with httpx2.AsyncClient() as http:
        for method, path in (("GET", "/chat/completions"), ("POST", "/completions"), ("GET", "/models/other")):
            answered = await http.request(method, wire.url + path)
            assert answered.status_code == 404
            assert answered.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "roles",
    [
        ["user", "calls", "tool", "user"],
        ["user", "user"],
        ["system", "system", "user"],
        ["user", "system", "user"],
        ["assistant", "user"],
        ["user", "assistant", "assistant", "user"],
        ["user", "assistant"],
    ],
)
def test_turns_are_checked_only_where_that_is_asked_for(roles: list[str], strict: bool) -> None:
    """Any client may use the demo model: what Chat Completions takes is answered there, by the rules too."""
    called = {"id": "c1", "type": "function", "function": {"name": "echo", "arguments": "{}"}}
    special: dict[str, Item] = {
        "calls": {"role": "assistant", "content": None, "tool_calls": [called]},
        "tool": {"role": "tool", "tool_call_id": "c1", "content": "x"},
    }
    messages = [special.get(role, {"role": role, "content": "Hello"}) for role in roles]
    with WireServer(strict_turns=strict) as server:
        answered = httpx2.post(f"{server.url}/chat/completions", json={"model": "m", "messages": messages})
        assert answered.status_code == (400 if strict else 200), answered.text
        items = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]
        answered = httpx2.post(f"{server.url}/responses", json={"model": "m", "input": items})
        assert answered.status_code == (400 if strict else 200), answered.text
