"""The JSON text protocol: what a model is told, and what its answers mean."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.engine.interfaces.messages import AssistantMessage, CallRequest, ResultMessage, UserMessage
from agents.engine.interfaces.provider import ToolDefinition, ToolRequest
from agents.providers.common.server import ModelServer
from agents.providers.json import items as json_items
from agents.providers.json.answer import TRY, for_people, read
from agents.providers.json.protocol import JsonProtocol, JsonReader
from agents.providers.json.stream import Held
from tests.providers.support import ECHO, HELLO, KEY, MODELS, ask, collect, request
from tests.wire.script import Reply
from tests.wire.server import WireServer

CALL = '{"tool": "echo", "parameters": {"text": "x"}, "terminate": false}'
THE_CALL = ToolRequest("echo", {"text": "x"})
LAST = '{"tool": "echo", "parameters": {}, "terminate": true}'
DOCUMENT = json.dumps({"tool": "write", "parameters": {"text": "```json\n{}\n```\n}"}, "terminate": False})


@pytest.fixture
async def provider(wire: WireServer) -> AsyncIterator[JsonProtocol]:
    provider = JsonProtocol(ModelServer(KEY, wire.url, models=MODELS, read_seconds=5))
    yield provider
    await provider.aclose()


@pytest.mark.parametrize(
    ("raw", "text", "call"),
    [
        (CALL, "", THE_CALL),
        (f"\n\n  {CALL}\n", "", THE_CALL),
        (f"```json\n{CALL}\n```", "", THE_CALL),
        (f"```\n{CALL}\n```\n", "", THE_CALL),
        (f"```JSON {CALL}```", "", THE_CALL),
        (f"```json\n{CALL}", "", THE_CALL),
        (f"I look.\n\n```json\n{CALL}\n```", "I look.", THE_CALL),
        (f"I look.\n```json\n{CALL}\n```\n\nThen more.", "I look.\n\nThen more.", THE_CALL),
        (f'As\n```json\n{{"a": 1}}\n```\nI do\n```json\n{CALL}\n```', 'As\n```json\n{"a": 1}\n```\nI do', THE_CALL),
        (DOCUMENT, "", ToolRequest("write", {"text": "```json\n{}\n```\n}"})),
        (f"So:\n```json\n{DOCUMENT}\n```", "So:", ToolRequest("write", {"text": "```json\n{}\n```\n}"})),
        (LAST, "", ToolRequest("echo", {}, terminate=True)),
        (f"I look.\n\n{CALL}", "I look.", THE_CALL),
        (f"I look.\n  {CALL}\n", "I look.", THE_CALL),
        (f"```sh\nls\n```\nSo:\n{CALL}", "```sh\nls\n```\nSo:", THE_CALL),
        (f"`{CALL}`", "", THE_CALL),
        (f"I look.\n`{CALL}`", "I look.", THE_CALL),
        (f"<tool_call>\n{CALL}\n</tool_call>", "", THE_CALL),
        (f"I look.\n<tool_call>{CALL}</tool_call>", "I look.", THE_CALL),
        (f"~~~json\n{CALL}\n~~~", "", THE_CALL),
        (f"```jsonc\n{CALL}\n```", "", THE_CALL),
        (f"```tool_call\n{CALL}\n```", "", THE_CALL),
        (f"I look.\n```python\n{CALL}\n```", "I look.", THE_CALL),
        ("So:" + '\n{"tool": "saw"}' * 30 + f"\n{CALL}", "So:" + '\n{"tool": "saw"}' * 30, THE_CALL),
    ],
)
def test_calls(raw: str, text: str, call: ToolRequest) -> None:
    """The object alone, in a fence, in a fence with words around it, or on a line of its own at the end (S45, R10)."""
    found = read(raw)
    assert (found.text, found.call, found.problem) == (text, call, "")


@pytest.mark.parametrize(
    "raw",
    [
        "Paris.",
        '{"name": "Ann", "age": 34}',
        '{"name": "Ann", "age": ',
        "{tool} stands for a name.",
        "{ hello there",
        'Use {"tool": "x"} like this.',
        f"The call was {CALL}",
        '[{"tool": "echo"}]',
        '{"a": {"tool": "echo"}}',
        "```python\n{'tool': 'echo'}\n```",
        '```json\n{"a": 1}\n```',
        '```json\n{"a": 1, b}\n``` is wrong.',
        "A set is written {1, 2}.",
        "```",
        "if (x) { tool: 1 }",
        'Two tools:\n{"tool": "saw", "price": 3}\n{"tool": "axe", "price": 4}',
        f'```json\n{{"calls": [\n{CALL}\n]}}\n```',
        f'{{"calls": [\n{CALL}\n]}}',
        "A set:\n{",
        "So:\n{'tool': 'axe'} is what Python shows.",
    ],
)
def test_what_is_no_call_is_the_final_answer(raw: str) -> None:
    """Whole and unchanged: braces in prose are no JSON, other objects no calls (S47, R1)."""
    found = read(raw)
    assert (found.text, found.call, found.problem) == (raw, None, "")


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ('{"tool": "echo", "parameters": {}}', "`terminate` is missing."),
        ('{"tool": "echo", "parameters": {}, "terminate": "no"}', "`terminate` must be true or false."),
        ('{"tool": "echo", "parameters": {}, "terminate": 0}', "`terminate` must be true or false."),
        ('{"tool": "echo", "parameters": {}, "terminate": null}', "`terminate` must be true or false."),
        ('{"tool": "echo", "terminate": true}', "`parameters` is missing."),
        ('{"tool": "echo", "parameters": "{}", "terminate": true}', "`parameters` must be an object."),
        ('{"tool": 5, "parameters": {}, "terminate": true}', "`tool` must be the name of a tool"),
        ('{"tool": " ", "parameters": {}, "terminate": true}', "`tool` must be the name of a tool"),
        ('{"tool": "echo", "text": "x", "parameters": {}, "terminate": true}', "unknown keys"),
        (f"{CALL}\n{CALL}", "There is text after the object."),
        (f"{CALL} I am looking.", "There is text after the object."),
        (f"I look.\n{CALL}\n\n[tool_result:echo] x\n\nDone.", "There is text after the object."),
        (f'I look.\n{CALL[:-1]}, "why": 1}}', "unknown keys"),
        (f"I look.\n```json\n{CALL}\n```\n{LAST}", "There are 2 calls in the answer; one is allowed."),
        ("I look.\n{'tool': 'echo', 'parameters': {}, 'terminate': False}", "It is not valid JSON"),
        ('<tool_call>\n{"tool": "echo"}\n</tool_call>', "`parameters` is missing."),
        (f"```json\n{CALL}\nSo.\n```", "There is text after the object, inside its fence."),
        (f"```json\n{CALL}\n```\n```json\n{LAST}\n```", "There are 2 calls in the answer; one is allowed."),
        ("{'tool': 'echo', 'parameters': {}, 'terminate': False}", "It is not valid JSON: Expecting property name"),
        ('{tool: "echo"}', "It is not valid JSON"),
        ('{"tool": "echo" "parameters": {}}', "It is not valid JSON: Expecting ',' delimiter."),
        ('{"tool": "echo" "parameters": {}}', 'near \'{"tool": "echo" "parameters'),
        ('{"tool": "echo", "parameters": {"n": NaN}, "terminate": true}', "NaN"),
        ('{"tool": "echo", "parameters": {"text": "two\nlines"}, "terminate": true}', "Invalid control character"),
        ('{"tool": "echo", "parameters": ' + '{"a":' * 10, "cut off"),
        ('{"tool": "echo", "parameters": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deep"),
    ],
)
def test_attempts_that_cannot_be_read(raw: str, why: str) -> None:
    """Strict, missing keys included; the sentence says what to change (S51, S52)."""
    found = read(raw)
    assert (found.text, found.call) == (raw, None)
    assert why in found.problem
    assert '{"tool": "NAME"' in found.problem


@pytest.mark.parametrize("end", range(1, len(CALL)))
def test_a_call_cut_anywhere_is_an_attempt(end: int) -> None:
    """Also before its first key is whole, and in a fence: half a call is never shown as an answer (R1)."""
    for raw in (CALL[:end], f"I look.\n```json\n{CALL[:end]}", f"```json\n{CALL[:end]}\n```"):
        assert "is cut off" in read(raw).problem
    if end > 1:  # a brace alone may be anything after words
        assert "is cut off" in read(f"I look.\n{CALL[:end]}").problem


@pytest.mark.parametrize(
    ("raw", "told", "near"),
    [
        ('{"tool": "§" "§"}', "It is not valid JSON: Expecting ',' delimiter.", 'near \'{"tool": "§" "§"}\'.'),
        (f'{{"§": 1, {CALL[1:]}', "There are unknown keys, which may belong in `parameters`.", "Unknown keys: §."),
        (
            '{"tool": "§", "n": NaN}',
            "It is not valid JSON: it contains a number that is not allowed.",
            "says: NaN is",
        ),
        ('{"tool": "§", "n": 1e999}', "It is not valid JSON: it contains a number", "says: 1e999 is"),
        ('{"tool": "§"', "The JSON object is cut off: it is never closed.", ""),
    ],
)
def test_people_are_told_what_is_wrong_without_the_answer(raw: str, told: str, near: str) -> None:
    """The model is told where it goes wrong, and what to do; also where the message goes on after it."""
    message = f"{read(raw).problem} This was try 1 of 3."
    assert near in message.partition(TRY)[2]
    assert for_people(message).startswith(f"Your answer is not a tool call that can be read. {told}")
    assert for_people("It is no JSON.") == "It is no JSON."


@given(st.text(alphabet="{}[]\"':,\\§9e-\x00 \n"))
def test_people_read_nothing_of_an_answer(said: str) -> None:
    """Whatever a model writes where a call may stand: calls that nobody asked for may stand in it."""
    for raw in (f'{{"tool": "§"{said}', f'{{"tool": "§", {said}}}', f"§\n{CALL[:-1]}, {said}}}", f'{{"tool": {said}}}'):
        assert not set("§9\x00\n") & set(for_people(read(raw).problem))


@given(st.text() | st.text(alphabet="{}[]\"'`:,tol \n"))
def test_reading_never_raises(raw: str) -> None:
    """Whatever a model writes is a call, an attempt or text, and only an attempt and text keep all of it."""
    found = read(raw)
    assert not (found.call and found.problem)
    assert found.call or found.text == raw


@pytest.mark.parametrize(
    "line",
    [
        '{"terminate": 1, "x": 2,',
        '{"tool":',
        '{"tool": "',
        '```json\n{"tool": [\n```',
        '```json\n{"a": [\n```',
        "`" * 50,
    ],
)
def test_reading_takes_no_time_to_speak_of(line: str) -> None:
    """Not even where a model says one thing over and over: the site's other turns wait meanwhile."""
    begun = time.process_time()
    for said in (line, f"{line}\n"):
        read("So:\n" + said * (50_000 // len(said)))
    assert time.process_time() - begun < 3


PROSE = st.sampled_from(
    [
        "",
        "I look.",
        "I look.\n\n",
        "{\n",
        "A {",
        "<b>\n",
        "So:\n",
        "`x` is ``y``\n\n",
        "{1}",
        "```python\nx\n```\n",
        "  \n",
        "``` \n",
    ]
)
OBJECT = st.sampled_from([CALL, LAST, DOCUMENT, CALL[:20], '{"a": 1}', "{", '{"tool": 1}', "{'tool': 1", "{x}"])
FENCE = st.sampled_from(
    [
        ("", ""),
        ("`", "`"),
        ("<tool_call>\n", "\n</tool_call>"),
        ("~~~\n", "\n~~~"),
        ("```python\n", "\n```"),
        ("```json\n", "\n```"),
        ("```\n", "\n```"),
        ("```", "```"),
        ("```js", "```"),
    ]
)


@st.composite
def answers(draw: st.DrawFn) -> str:
    """Prose, perhaps an object in or without a fence, prose."""
    before, opened = draw(PROSE), draw(FENCE)
    return f"{before}{opened[0]}{draw(OBJECT)}{opened[1]}{draw(PROSE)}"


@given(answers().filter(str.strip), st.lists(st.integers(1, 9), max_size=60))
@example(f"```js{CALL}```{{\n", [])
def test_no_part_of_a_call_is_ever_streamed(raw: str, sizes: list[int]) -> None:
    """However it is cut into pieces, what is let through is the beginning of the answer's text; of plain text, all."""
    reader, at, shown = JsonReader(), 0, ""
    for size in [*sizes, len(raw)]:
        shown += reader.feed({"choices": [{"delta": {"content": raw[at : at + size]}, "finish_reason": None}]})
        at += size
    shown += reader.feed({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    answer = reader.answer()
    assert answer.text.startswith(shown)
    if not (answer.calls or answer.unreadable):
        assert shown == answer.text == raw
    alone = read(shown)
    assert (alone.call, alone.problem) == (None, "")  # nor is it the beginning of a call


def test_prose_streams_up_to_a_call_and_without_one_to_its_end() -> None:
    """Letter by letter: nothing is held back longer than it must be."""
    held = Held()
    assert "".join(map(held.feed, f"I look.\n\n```json\n{CALL}\n```")) == "I look."
    held = Held()
    text = "A ``` fence, ```python\nx = {}\n``` and {braces} `here`, `there`.\n{1}\n<b> ~x~\n{to} it."
    assert "".join(map(held.feed, text)) == text
    held = Held()
    text = "A list:\n{tool belts} are nice.\n{toolbox}\n{terminate\n{'tools': 1}\n{to"
    assert "".join(map(held.feed, text)) == text.removesuffix("\n{to")


@given(st.lists(st.integers(1, 9), max_size=60))
def test_reasoning_before_a_call_is_neither_shown_nor_read(sizes: list[int]) -> None:
    """Also where it holds a draft of the call, and a mark of the bytes' order stands before it."""
    raw = f"\ufeff<think>\nPerhaps:\n```json\n{LAST}\n```\n</think>\n\n{CALL}"
    reader, at, shown = JsonReader(), 0, ""
    for size in [*sizes, len(raw)]:
        shown += reader.feed({"choices": [{"delta": {"content": raw[at : at + size]}, "finish_reason": None}]})
        at += size
    shown += reader.feed({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    answer = reader.answer()
    assert (shown, answer.text, answer.calls) == ("", "", (THE_CALL,))
    assert answer.reasoning == f"Perhaps:\n```json\n{LAST}\n```"


async def test_tools_stand_in_the_system_message(wire: WireServer, provider: JsonProtocol) -> None:
    """With the instruction, name, description and schema; the request itself offers none (S46, R1)."""
    wire.script = [Reply("Yes.")]
    await ask(provider)
    body = wire.requests[0].body
    assert body.keys() == {"model", "stream", "stream_options", "messages"}
    system = body["messages"][0]
    assert system["role"] == "system"
    assert system["content"].startswith("You are a test.\n\n# Tools\n\nTo use a tool, output ONLY one JSON object")
    assert system["content"].endswith(
        '### echo\nSay it again.\nParameters: {"type":"object","properties":{"text":{"type":"string"}}}'
    )


def test_without_tools_nothing_is_said_of_tools() -> None:
    """The system message stays as it is."""
    assert json_items.system_text("S", ()) == "S"
    assert "### b_c" in json_items.system_text("", (ToolDefinition("b_c", "D.", {"type": "object"}),))


def test_tools_stand_below_the_headings_of_their_categories() -> None:
    """In their order, so that what is added later only adds to the text; those of none may come first or last (S62)."""

    def of(name: str, category: str = "") -> ToolDefinition:
        return ToolDefinition(name, "D.", {}, category)

    def headings(*tools: ToolDefinition) -> list[str]:
        return [line for line in json_items.system_text("", tools).splitlines() if line.startswith("##")]

    first = (of("a", "Files"), of("b", "Files"), of("c", "Two\nlines"))
    assert headings(*first) == ["## Files", "### a", "### b", "## Two lines", "### c"]
    assert headings(of("a"), *first[1:]) == ["### a", "## Files", "### b", "## Two lines", "### c"]
    assert headings(*first, of("d"), of("e", "Files"))[5:] == ["## Other tools", "### d", "## Files", "### e"]
    before, after = (json_items.system_text("S.", tools) for tools in (first, (*first, of("e", "Files"))))
    assert after.startswith(before)


def test_the_history_is_plain_messages() -> None:
    """Calls as the object that asks for them, each with its result right after it, never from the system (R17)."""
    calls = (CallRequest("c1", "a_b", {"y": 1, "x": "ä"}), CallRequest("c2", "c", {}))
    results = (ResultMessage("c1", "a_b", "one"), ResultMessage("c2", "c", "two"))
    items = json.loads(b"[" + json_items.encode([AssistantMessage("I look.", calls), *results]) + b"]")
    assert items == [
        {
            "role": "assistant",
            "content": 'I look.\n\n```json\n{"tool": "a_b", "parameters": {"x": "ä", "y": 1}, "terminate": false}\n```',
        },
        {"role": "user", "content": "[tool_result:a_b] one"},
        {"role": "assistant", "content": '{"tool": "c", "parameters": {}, "terminate": false}'},
        {"role": "user", "content": "[tool_result:c] two"},
    ]
    assert read(items[0]["content"]).call == ToolRequest("a_b", {"x": "ä", "y": 1})
    assert json.loads(json_items.encode([UserMessage("Hi.", ("N",))])) == {"role": "user", "content": "Hi.\n\nN"}


async def test_an_attempt_comes_as_an_unreadable_answer(wire: WireServer, provider: JsonProtocol) -> None:
    """All of it raw, with its counts, and nothing of it streamed (S51)."""
    wire.script = [Reply(CALL[:-3], usage={"input_tokens": 3, "output_tokens": 2})]
    pieces, answer = await collect(provider, request(provider, HELLO))
    assert (pieces, answer.text, answer.calls) == ([], CALL[:-3], ())
    assert "is cut off" in answer.unreadable
    assert answer.usage["input_tokens"] == 3


async def test_tool_calls_of_the_api_are_not_read(wire: WireServer, provider: JsonProtocol) -> None:
    """Some servers make them of what the model writes: it is told to write them itself."""
    call = {"id": "c1", "function": {"name": "echo", "arguments": "{}"}}
    chunk = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    wire.script = [Reply(events=(chunk,))]
    answer = await ask(provider)
    assert answer.calls == ()
    assert "by a tool call of the API" in answer.unreadable
    assert "echo" in answer.text


async def test_reasoning_beside_a_call(wire: WireServer, provider: JsonProtocol) -> None:
    """It is no part of the answer's text."""
    first = {"choices": [{"delta": {"reasoning": "Hm."}, "finish_reason": None}]}
    second = {"choices": [{"delta": {"content": CALL}, "finish_reason": "stop"}]}
    wire.script = [Reply(events=(first, second))]
    answer = await ask(provider)
    assert (answer.text, answer.calls, answer.reasoning) == ("", (THE_CALL,), "Hm.")
    assert ECHO.name == answer.calls[0].name
