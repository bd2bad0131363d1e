"""pydantic-ai against `/v1` (S63): its agent asks in Chat Completions or Responses, and calls a tool of its own."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.engine.ledger import JSON
from tests.clients.conftest import Ended, Served, example, ran
from tests.wire.script import Call, Refusal, Reply

pytestmark = pytest.mark.clients

PROGRAM = Path(__file__).parent / "height.py"
SAID = "It is the highest mountain of the country, and a cable car leads to its top."
Run = Callable[..., Ended]
in_both = pytest.mark.parametrize("api", ["chat", "responses"])


@pytest.fixture
def run(pydantic_ai: Path, served: Served, tmp_path: Path) -> Run:
    """Runs the program with an API, whether to stream, a question, and the site's address and key."""

    def run(api: str, how: str, question: str, key: str = served.key) -> Ended:
        return ran(pydantic_ai, PROGRAM, served.base_url, key, api, how, question, home=tmp_path)

    return run


def pieces(ended: Ended) -> list[str]:
    assert ended.code == 0, ended.errors
    return [json.loads(line) for line in ended.printed.splitlines()]


@in_both
def test_a_whole_answer(run: Run, served: Served, api: str) -> None:
    served.model.script = [Reply(SAID)]
    assert pieces(run(api, "whole", "Tell me of the Zugspitze.")) == [SAID]
    (asked,) = served.asked()
    assert asked["model"] == "small"
    assert asked["stream"] is False
    assert "Tell me of the Zugspitze." in json.dumps(asked)


@in_both
def test_a_streamed_answer(run: Run, served: Served, api: str) -> None:
    served.model.script = [Reply(SAID)]
    printed = pieces(run(api, "streamed", "Tell me of the Zugspitze."))
    assert "".join(printed) == SAID
    assert len(printed) > 1
    (asked,) = served.asked()
    assert asked["stream"] is True


@in_both
def test_a_call_of_its_tool(run: Run, served: Served, api: str) -> None:
    served.model.script = [Reply(calls=(Call("height", {"place": "Zugspitze"}, "call_1"),)), Reply("2962 metres.")]
    assert pieces(run(api, "whole", "How high is the Zugspitze?")) == ["2962 metres."]
    first, second = served.asked()
    assert "The height of a mountain, in metres." in json.dumps(first["tools"])
    assert results(second) == [("call_1", "2962")]


def results(asked: JSON) -> list[tuple[str, str]]:
    """The results of calls in the history of either API, each with the id of its call."""
    history = asked.get("messages") or asked["input"]
    return [(item["tool_call_id"], item["content"]) for item in history if item.get("role") == "tool"] + [
        (item["call_id"], item["output"]) for item in history if item.get("type") == "function_call_output"
    ]


def test_an_error_of_the_model_server(run: Run, served: Served) -> None:
    """pydantic-ai knows what it means by the code in its body."""
    served.model.script = [Reply(refusal=Refusal(400, "context_length_exceeded", "It is too long."))]
    ended = run("chat", "whole", "Tell me of the Zugspitze.")
    assert ended.code != 0
    assert "ModelContextWindowExceededError" in ended.errors
    assert "It is too long." in ended.errors


def test_a_key_that_nobody_has(run: Run, served: Served) -> None:
    ended = run("chat", "whole", "Tell me of the Zugspitze.", key="agk_nobody")
    assert ended.code != 0
    assert "invalid_api_key" in ended.errors
    assert served.asked() == []


def test_the_example_of_the_page(pydantic_ai: Path, served: Served, tmp_path: Path) -> None:
    served.model.script = [Reply(SAID)]
    ended = ran(pydantic_ai, "-c", example("pydantic-ai", "python", served), home=tmp_path)
    assert ended == Ended(0, f"{SAID}\n", "")
    (asked,) = served.asked()
    assert asked["model"] == "gpt-6.1-terra"
