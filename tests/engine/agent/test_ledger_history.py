"""What a model is told of a ledger that a policy hands it: recorded, joined of several runs, or typed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from agents.engine import Action, Context, Ledger, Step, run
from agents.engine.agent.ledger_history import ledger_messages
from agents.engine.agent.projection import NEXT
from agents.engine.interfaces.messages import AssistantMessage, ResultMessage, UserMessage
from agents.engine.ledger import action_call, action_error, action_result, text
from tests.engine.sound import problems


def told(*steps: Step) -> list[Any]:
    """The messages, each in short: who speaks, and what is said, asked for or returned."""
    messages = ledger_messages(steps)
    assert problems(messages) == []
    short: list[Any] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            short.append((message.text, *((call.name, call.arguments) for call in message.calls)))
        elif isinstance(message, ResultMessage):
            short.append(f"{message.name}: {message.content}")
        elif message != UserMessage(NEXT):
            short.append(message.text)
    return short


def asked(city: str, policy: str = "weather", actor: str = "assistant") -> Step:
    return action_call(actor, policy, {"city": city})


def test_a_conversation_typed_by_hand_is_told_as_it_went() -> None:
    """Its steps have no paths: results are told of the calls they follow, and what was said then comes after them."""
    assert told(
        text("user", "Is it colder in Oslo than in Rome?"),
        text("assistant", "Let me look."),
        asked("Oslo"),
        asked("Rome"),
        action_result("weather", 2),
        action_result("weather", 21),
        text("assistant", "It is."),
        text("user", "And when does the train leave?"),
        asked("Rome", "trains"),
        asked("Bari", "weather"),
        action_result("weather", 25),
        action_error("trains", "strike", "No trains today."),
        text("assistant", "Not today."),
    ) == [
        "Is it colder in Oslo than in Rome?",
        ("Let me look.", ("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})),
        "weather: 2",
        "weather: 21",
        ("It is.",),
        "And when does the train leave?",
        ("", ("trains", {"city": "Rome"}), ("weather", {"city": "Bari"})),
        "trains: Error (strike): No trains today.",
        "weather: 25",
        ("Not today.",),
    ]


async def test_two_runs_of_one_chat_are_told_one_after_the_other() -> None:
    """Their calls have the same paths; each result is told of the call of its own run, and no root as a call."""

    async def chat(action: Action, ctx: Context) -> list[Step]:
        answer = await ctx.call(Action("answers", action.payload))
        await ctx.invoke(next(step for step in answer if step.type == "action_call"))
        return []

    async def answers(action: Action, ctx: Context) -> list[Step]:
        return [text("assistant", f"I look at {action.payload['city']}."), asked(action.payload["city"])]

    async def weather(action: Action, ctx: Context) -> list[Step]:
        return [action_result("weather", f"mild in {action.payload['city']}")]

    both = Ledger()
    for city in ("Oslo", "Rome"):
        policies = {"chat": chat, "answers": answers, "weather": weather}
        both = both.append(text("user", f"{city}?")).extend(await run("chat", {"city": city}, policies))
    assert told(*both) == [
        "Oslo?",
        ("I look at Oslo.", ("weather", {"city": "Oslo"})),
        "weather: mild in Oslo",
        "Rome?",
        ("I look at Rome.", ("weather", {"city": "Rome"})),
        "weather: mild in Rome",
    ]


def test_a_call_without_a_result_and_a_result_without_a_call_are_left_out() -> None:
    """A run that broke off leaves a call; the next run's result at its path is not that call's."""
    broken = Step("assistant", "action_call", {"policy": "weather", "payload": {"city": "Oslo"}}, path="1/0")
    again = Step("assistant", "action_call", {"policy": "weather", "payload": {"city": "Rome"}}, path="1/0")
    result = Step("weather", "action_result", {"output": 21}, path="1/0")
    orphan = action_result("trains", "late")
    assert told(text("user", "Well?"), orphan, broken, again, result) == [
        "Well?",
        ("", ("weather", {"city": "Rome"})),
        "weather: 21",
    ]


@pytest.mark.parametrize("payload", [{}, {"text": None}, {"txt": "Hello."}, {"text": 5}])
def test_a_text_without_text_is_refused(payload: Any) -> None:
    with pytest.raises(TypeError, match="a text by 'user' has no `text`"):
        ledger_messages([Step("user", "text", payload)])


@pytest.mark.parametrize(
    "payload", [{}, {"policy": "x"}, {"policy": 5, "payload": {}}, {"policy": "x", "payload": "y"}]
)
def test_a_call_of_nothing_is_refused(payload: Any) -> None:
    with pytest.raises(TypeError, match="a call needs a `policy`, a name, and a `payload`, a dict"):
        ledger_messages([text("user", "Hi."), Step("assistant", "action_call", payload)])
