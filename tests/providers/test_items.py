"""Whatever history the engine makes, the API accepts it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from agents.engine.interfaces.messages import (
    AssistantMessage,
    CallRequest,
    Message,
    ResultMessage,
    UserMessage,
)
from agents.engine.ledger import JSON
from agents.providers.chat import items as chat_items
from agents.providers.common.values import BETWEEN
from agents.providers.json import items as json_items
from agents.providers.responses.items import encode
from tests.engine.sound import problems
from tests.wire import chat_history, history
from tests.wire.refusals import RequestError

unhurried = settings(suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
opaque = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("reasoning"), "id": st.text(min_size=1)},
        optional={
            "summary": st.just([]),
            "encrypted_content": st.text() | st.none(),
            "content": st.just([{"type": "reasoning_text", "text": "x"}]),
            "status": st.just("completed"),
        },
    ),
    st.sampled_from([{"type": "message"}, {"type": "message", "phase": "commentary"}, {"type": "function_call"}]),
    json_values,
)


@st.composite
def rounds(draw: st.DrawFn) -> list[Message]:
    """One message of a person, or an answer of the model with the results of its calls, in any order."""
    if draw(st.booleans()):
        return [UserMessage(draw(st.text()))]
    ids = draw(st.lists(st.uuids().map(str) | st.text(min_size=1), max_size=3, unique=True))
    calls = tuple(CallRequest(i, draw(st.text()), draw(st.dictionaries(st.text(), json_values))) for i in ids)
    said = AssistantMessage(draw(st.text()), calls, tuple(draw(st.lists(opaque, max_size=3))))
    notes = st.lists(st.text(min_size=1), max_size=2).map(tuple)
    results = (
        ResultMessage(i, "any", draw(st.text()), draw(st.text()), draw(notes)) for i in draw(st.permutations(ids))
    )
    return [said, *results]


histories = st.lists(rounds(), max_size=5).map(lambda each: [message for some in each for message in some])


Encode = Callable[..., bytes]
Check = Callable[..., None]


def responses(messages: Sequence[Message], *, alternate: bool = False) -> bytes:
    """As it goes out, whatever the server insists on."""
    return encode(messages)


def check_chat(items: list[JSON], *, strict_turns: bool = True) -> None:
    """As it goes out: behind a system message."""
    chat_history.check([{"role": "system", "content": "S"}, *items], strict_turns=strict_turns)


def deepseek(messages: Sequence[Message], *, alternate: bool = False) -> bytes:
    """What stands in it beside the API's own fields is left out: the server here knows only those."""
    items = json.loads(b"[" + chat_items.encode(messages, alternate=alternate, reasoning=True, parts=False) + b"]")
    assert all("reasoning_content" in item for item in items if item["role"] == "assistant")
    assert all(isinstance(item["content"], str) for item in items if item["role"] == "tool")
    return json.dumps([_without(item, "reasoning_content") for item in items])[1:-1].encode()


def _without(item: dict[str, JSON], name: str) -> dict[str, JSON]:
    return {key: value for key, value in item.items() if key != name}


APIS: list[tuple[Encode, Check]] = [(responses, history.check), (chat_items.encode, check_chat), (deepseek, check_chat)]
WITH_JSON = [*APIS, (json_items.encode, check_chat)]


@pytest.mark.parametrize("strict", [False, True], ids=["plain", "strict"])
@pytest.mark.parametrize(("encode", "check"), WITH_JSON, ids=["responses", "chat", "deepseek", "json"])
@unhurried
@given(messages=histories.filter(lambda messages: problems(messages) == []))
def test_what_the_engine_finds_sound_the_api_accepts(
    encode: Encode, check: Check, strict: bool, messages: list[Message]
) -> None:
    """Names, ids, items and texts may hold anything, in any order; no history is refused for ever (I10, T-30).

    For a server that insists, a person's words stand before it and after it, which is what the engine sees to.
    """
    whole = [UserMessage("Hello."), *messages, UserMessage("Go on.")] if strict else messages
    check(json.loads(b"[" + encode(whole, alternate=strict) + b"]"), strict_turns=strict)


@pytest.mark.parametrize(("encode", "check"), APIS, ids=["responses", "chat", "deepseek"])
@unhurried
@given(messages=histories)
def test_what_the_engine_finds_unsound_is_not_hidden(encode: Encode, check: Check, messages: list[Message]) -> None:
    """Encoding mends no history: one with a result missing or a call twice is refused."""
    unsound = [message for message in messages if not isinstance(message, ResultMessage)]
    assume(any(isinstance(message, AssistantMessage) and message.calls for message in unsound))
    with pytest.raises(RequestError):
        check(json.loads(b"[" + encode(unsound) + b"]"), strict_turns=False)


@unhurried
@given(messages=histories.filter(lambda messages: problems(messages) == []))
def test_in_json_every_call_is_followed_by_its_own_result(messages: list[Message]) -> None:
    """Each as a text that the protocol itself would read, and nothing of the history is left out (R17)."""
    items = json.loads(b"[" + json_items.encode(messages) + b"]")
    calls = [call for message in messages if isinstance(message, AssistantMessage) for call in message.calls]
    results = {message.call_id: message for message in messages if isinstance(message, ResultMessage)}
    places = [at for at, item in enumerate(items) if item["content"].startswith("[tool_result:")]
    told = [items[at]["content"] for at in places]
    for call in calls:
        result = results[call.call_id]
        at = next(at for at in places if items[at]["content"].endswith(f"] {told_as(BETWEEN.join(result.texts))}"))
        assert items[at]["role"] == "user"
    assert len(told) >= len(calls)


def told_as(text: str) -> str:
    """A text as it comes back out of UTF-8."""
    return text.encode("utf-8", "replace").decode()


@pytest.mark.parametrize(("encode", "role"), [(chat_items.encode, "tool"), (json_items.encode, "user")])
def test_roles_alternate_only_for_a_server_that_insists(encode: Encode, role: str) -> None:
    """Elsewhere everything stands as it was said, and nothing is put into anybody's mouth (S4)."""
    said = [UserMessage("One."), UserMessage("Two.")]
    asked = [AssistantMessage("", (CallRequest("c", "echo", {}),)), ResultMessage("c", "echo", "x")]
    plain, strict = (
        [item["role"] for item in json.loads(b"[" + encode([*said, *asked, *said], alternate=alternate) + b"]")]
        for alternate in (False, True)
    )
    assert plain == ["user", "user", "assistant", role, "user", "user"]
    assert strict == ["user", "assistant", role, "assistant", "user"]


NOTED = ResultMessage("c", "report", '{"pages": 2}', "[Changed.]", ("[file a.txt] S", "[file b.txt] T"))


def test_a_result_that_is_json_stays_json() -> None:
    """What the site adds has parts of its own where the API has parts; where it has none, it follows (R21)."""
    asked = AssistantMessage("", (CallRequest("c", "report", {}),))
    *_, item = json.loads(b"[" + encode([asked, NOTED]) + b"]")
    assert [part["type"] for part in item["output"]] == ["input_text"] * 4
    assert [part["text"] for part in item["output"]] == [*NOTED.texts]
    *_, item = json.loads(b"[" + chat_items.encode([asked, NOTED]) + b"]")
    assert [part["type"] for part in item["content"]] == ["text"] * 4
    assert json.loads(item["content"][1]["text"]) == {"pages": 2}
    *_, item = json.loads(b"[" + encode([asked, NOTED], parts=False) + b"]")
    assert item["output"] == BETWEEN.join(NOTED.texts)
    *_, item = json.loads(b"[" + json_items.encode([asked, NOTED]) + b"]")
    assert item["content"] == f"[tool_result:report] {BETWEEN.join(NOTED.texts)}"
    plain = ResultMessage("c", "report", '{"pages": 2}')
    *_, item = json.loads(b"[" + encode([asked, plain]) + b"]")
    assert item["output"] == plain.content


@unhurried
@given(json_values)
def test_arguments_survive(value: JSON) -> None:
    """A call's arguments come to the API as they were."""
    items = json.loads(b"[" + encode([AssistantMessage("", (CallRequest("c", "n", {"value": value}),))]) + b"]")
    assert json.loads(items[0]["arguments"]) == {"value": value}


def test_names_no_api_takes_are_made_fit() -> None:
    """A name that the model made up is told back in letters that the API takes; ids keep calls and results together."""
    call = CallRequest("i" * 65, "no such/tool" + "x" * 80, {})
    items = json.loads(b"[" + encode([AssistantMessage("", (call,)), ResultMessage("i" * 65, call.name, "no")]) + b"]")
    assert items[0]["name"].startswith("no_such_tool")
    assert len(items[0]["name"]) == 64
    assert items[0]["call_id"] == items[1]["call_id"]
    assert len(items[0]["call_id"]) <= 64


def test_reasoning_goes_back_in_its_place() -> None:
    """The API refuses reasoning that is not followed by what it led to."""
    first, second = ({"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": "x"} for n in (1, 2))
    places = (first, {"type": "message", "phase": "commentary"}, second, {"type": "function_call"})
    calls = (CallRequest("c1", "echo", {}), CallRequest("c2", "echo", {}))
    items = json.loads(b"[" + encode([AssistantMessage("Hi.", calls, places)]) + b"]")
    assert items[0] == first
    assert (items[1]["type"], items[1]["phase"]) == ("message", "commentary")
    assert items[2] == second
    assert [item["call_id"] for item in items[3:]] == ["c1", "c2"]


def test_reasoning_without_content_stays_here() -> None:
    """Nothing was stored at the provider, so an id alone leads nowhere."""
    item = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    assert b"rs_1" not in encode([AssistantMessage("Hi.", (), (item,))])


def test_reasoning_that_led_to_nothing_stays_here() -> None:
    """The API refuses it."""
    item = {"type": "reasoning", "id": "rs_1", "encrypted_content": "x"}
    assert encode([AssistantMessage("", (), (item,))]) == b""
