"""Reasoning that a model writes in front of its answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.interfaces.provider import Provider
from agents.providers.common.reasoning import Thoughts
from agents.providers.common.server import ModelServer
from agents.providers.responses.protocol import Responses
from tests.providers.support import HELLO, KEY, MODELS, collect, refusal, request
from tests.wire.script import Reply
from tests.wire.server import WireServer

SAID = [
    ("Hi.", "Hi.", ""),
    ("<think>Hm.</think>Hi.", "Hi.", "Hm."),
    ("\n<think>\nHm.\n</think>\n\nHi.\n", "Hi.\n", "Hm."),
    ("\ufeff<THINK>Hm.</Think>\n\n  Hi.", "Hi.", "Hm."),
    ("<thinking>Hm. </think> </thinking>Hi.", "Hi.", "Hm. </think>"),
    ("<think>İ One.</think>\n<think>Two.</think>\nHi.", "Hi.", "İ One.\n\nTwo."),
    ("<think></think>\n\nHi.", "Hi.", ""),
    ("<think>Hm.</thi", "", "Hm.</thi"),
    ("<think>Hm.", "", "Hm."),
    ("<thi", "<thi", ""),
    ("\n\n<b>Hi.</b>", "\n\n<b>Hi.</b>", ""),
    ("The tag <think> opens it.</think>", "The tag <think> opens it.</think>", ""),
    ("<think>Hm.</think>", "", "Hm."),
]


@pytest.mark.parametrize(("raw", "text", "thought"), SAID)
@given(sizes=st.lists(st.integers(1, 5), max_size=60))
def test_what_an_answer_begins_with_is_no_part_of_it(raw: str, text: str, thought: str, sizes: list[int]) -> None:
    """However it is cut into pieces; the words in an answer's middle are words."""
    thoughts, at, said = Thoughts(), 0, ""
    for size in [*sizes, len(raw)]:
        said += thoughts.feed(raw[at : at + size])
        assert text.startswith(said)
        at += size
    assert (said + thoughts.end(), thoughts.thought) == (text, thought)


async def test_it_is_kept_as_reasoning(wire: WireServer, speaker: Provider) -> None:
    """And never streamed as the answer; an answer that is nothing else is empty."""
    wire.script = [Reply("<think>\nLet me look at it.\n</think>\n\nHi."), Reply("<think>Let me look at it.</think>\n")]
    pieces, answer = await collect(speaker, request(speaker, HELLO))
    assert ("".join(pieces), answer.text, answer.reasoning) == ("Hi.", "Hi.", "Let me look at it.")
    assert (await refusal(speaker)).code == "empty_answer"


@pytest.mark.parametrize(
    ("raw", "text", "reasoning"),
    [
        ("Let me look at it.\n</think>\n\nHi.", "Hi.", "Let me look at it."),
        ("</think>\n\nHi.", "Hi.", ""),
        ("Look:\n```\nx\n```\n</thinking>\nHi.\n", "Hi.\n", "Look:\n```\nx\n```"),
        ("The mark </think>\nends it.", "The mark </think>\nends it.", ""),
        ("So:\n<think>\nHm.\n</think>\nis it.", "So:\n<think>\nHm.\n</think>\nis it.", ""),
    ],
)
async def test_the_opening_mark_may_stand_in_the_prompt(
    wire: WireServer, speaker: Provider, raw: str, text: str, reasoning: str
) -> None:
    """Where the model's template opens the reasoning, the whole answer is without what stands before its end."""
    wire.script = [Reply(raw)]
    _, answer = await collect(speaker, request(speaker, HELLO))
    assert (answer.text, answer.reasoning) == (text, reasoning)


@pytest.mark.parametrize("raw", ["<thi", "<think>Hm.</think>One.", "\ufeffOne.", "  "])
async def test_what_streams_is_what_two_messages_hold(wire: WireServer, raw: str) -> None:
    """Whether or not something is taken out of the first."""
    provider = Responses(ModelServer(KEY, wire.url, models=MODELS))
    pieces = [
        {"type": "response.output_text.delta", "output_index": n, "delta": d} for n, d in enumerate([raw, "Two."])
    ]
    wire.script = [Reply(events=(*pieces, {"type": "response.completed", "response": {"output": []}}))]
    streamed, answer = await collect(provider, request(provider, HELLO))
    assert "".join(streamed) == answer.text
    assert answer.text.endswith("\n\nTwo.")
    await provider.aclose()
