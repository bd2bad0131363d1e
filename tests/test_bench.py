"""The benchmarks whose figures decide something: their model does what it is told, and their verdicts hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from openai import OpenAI

from bench.peers.contenders import contender
from bench.peers.task import ECHO, ECHO_TOOL, SAID_BYTES, task
from bench.processes import await_answer, free_port, started
from bench.soak import grown


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    port = free_port()
    with started("-m", "bench.peers.model", f"--port={port}"):
        await_answer(f"http://127.0.0.1:{port}/")
        yield f"http://127.0.0.1:{port}/v1"


@pytest.mark.parametrize("stream", [False, True])
def test_the_model_calls_the_tool_as_often_as_it_was_told(base_url: str, stream: bool) -> None:
    said, calls = [{"role": "user", "content": task(2)}], []
    with OpenAI(base_url=base_url, api_key="bench") as client:
        for number in range(3):
            asked = {"model": "bench", "messages": said, "tools": [ECHO_TOOL]}
            if stream:
                with client.chat.completions.stream(**asked) as events:  # type: ignore[arg-type]
                    message = events.get_final_completion().choices[0].message
            else:
                message = client.chat.completions.create(**asked).choices[0].message  # type: ignore[call-overload]
            assert [call.function.name for call in message.tool_calls or ()] == [ECHO] * (number < 2)
            calls += message.tool_calls or []
            said.append(message.model_dump(exclude_none=True))
            said += [{"role": "tool", "tool_call_id": call.id, "content": "x"} for call in message.tool_calls or ()]
    assert message.content == "Enough."
    assert len({call.id for call in calls}) == 2
    assert calls[0].function.arguments == '{"text": "' + "x" * SAID_BYTES + '"}'


@pytest.mark.parametrize("name", ["sdk", "raw"])
def test_a_contender_runs_turns_one_by_one_and_at_once(base_url: str, name: str, tmp_path: Path) -> None:
    with contender(name, base_url, tmp_path) as each:
        assert each.do("turn", rounds=3)["seconds"] > 0
        assert each.do("many", turns=5, rounds=1, delay_ms=20)["seconds"] > 0.04


def test_a_soak_says_what_grew() -> None:
    steady = [{"ended": n, "web mb": 100.0, "worker files": 20} for n in range(8)]
    assert grown(steady) == []
    leaking = [line | {"worker files": 20 + 7 * n} for n, line in enumerate(steady)]
    assert grown(leaking) == ["worker files"]
    assert grown([line | {"web mb": 100.0 + n} for n, line in enumerate(steady)]) == []
