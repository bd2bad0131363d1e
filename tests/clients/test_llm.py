"""The command `llm` against `/v1` (S63). `llm openai endpoint` needs no configuration, and says so in its help."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.conftest import Ended, Served, example, ran
from tests.wire.script import Call, Refusal, Reply

pytestmark = pytest.mark.clients

SAID = "It is the highest mountain of the country, and a cable car leads to its top."
QUESTION = {"role": "user", "content": "Tell me of the Zugspitze."}
FUNCTIONS = """
def height(place: str) -> int:
    "The height of a mountain, in metres."
    return {"Zugspitze": 2962}[place]
"""
Run = Callable[..., Ended]


@pytest.fixture
def run(llm: Path, served: Served, tmp_path: Path) -> Run:
    """Runs `llm` with these words, and the site's address and key."""

    def run(*words: str, key: str = served.key) -> Ended:
        return ran(llm, "openai", "endpoint", served.base_url, "--key", key, *words, home=tmp_path)

    return run


def test_a_whole_answer(run: Run, served: Served) -> None:
    served.model.script = [Reply(SAID)]
    assert run("-m", "small", "--no-stream", QUESTION["content"]) == Ended(0, f"{SAID}\n", "")
    assert served.asked() == [{"model": "small", "stream": False, "messages": [QUESTION]}]


def test_a_streamed_answer(run: Run, served: Served) -> None:
    served.model.script = [Reply(SAID)]
    assert run("-m", "small", QUESTION["content"]) == Ended(0, f"{SAID}\n", "")
    counted = {"stream_options": {"include_usage": True}}
    assert served.asked() == [{"model": "small", "stream": True, "messages": [QUESTION], **counted}]


def test_an_answer_of_the_responses_api(run: Run, served: Served) -> None:
    served.model.script = [Reply(SAID)]
    assert run("-m", "small", "--responses", QUESTION["content"]) == Ended(0, f"{SAID}\n", "")
    assert served.asked() == [{"model": "small", "stream": True, "input": [QUESTION], "store": False}]


def test_a_call_of_a_function(run: Run, served: Served) -> None:
    served.model.script = [Reply(calls=(Call("height", {"place": "Zugspitze"}, "call_1"),)), Reply("2962 metres.")]
    asked = run("-m", "small", "--functions", FUNCTIONS, "How high is the Zugspitze?")
    assert asked == Ended(0, "2962 metres.\n", "")
    _, second = served.asked()
    assert second["messages"][-1] == {"role": "tool", "tool_call_id": "call_1", "content": "2962"}


def test_the_list_of_models(run: Run) -> None:
    assert run("--models") == Ended(0, "demo\n", "")


def test_an_error_of_the_model_server(run: Run, served: Served) -> None:
    served.model.script = [Reply(refusal=Refusal(400, "context_length_exceeded", "It is too long."))]
    ended = run("-m", "small", QUESTION["content"])
    assert ended.code == 1
    assert "400" in ended.errors
    assert "It is too long." in ended.errors


def test_a_key_that_nobody_has(run: Run, served: Served) -> None:
    ended = run("-m", "small", QUESTION["content"], key="agk_nobody")
    assert ended.code == 1
    assert "Send one of your API keys of this site" in ended.errors
    assert served.asked() == []


def test_the_configuration_of_the_page(llm: Path, served: Served, tmp_path: Path) -> None:
    (tmp_path / "extra-openai-models.yaml").write_text(example("llm", "yaml", served))
    assert ran(llm, "keys", "set", "agentsite", "--value", served.key, home=tmp_path).code == 0
    served.model.script = [Reply(SAID)]
    assert ran(llm, "-m", "site", QUESTION["content"], home=tmp_path) == Ended(0, f"{SAID}\n", "")
    (asked,) = served.asked()
    assert asked["model"] == "gpt-6.1-terra"
