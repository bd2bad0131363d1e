"""The first step of a policy's turn, redacted: nothing of its payload is left, and what people read stays in step."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agents.engine.ledger import JSON, Step, canonical
from agents.engine.root import site_of, words_of
from conversations.ledger.redacted import PLACEHOLDER, KeptStep, has_content, redacted, texts

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
PAYLOADS = st.dictionaries(st.text() | st.just("text"), VALUES, max_size=4)
SITES = st.fixed_dictionaries(
    {"tier": st.sampled_from(["normal", "high"])},
    optional={
        "summary": st.text(min_size=1),
        "system": st.text(),
        "continues": st.integers(1),
        "repeats": st.integers(1),
    },
)


def kept(said: dict[str, JSON]) -> KeptStep:
    return KeptStep(1, 1, "", "user:1", "action_call", "2026-01-01T00:00:00+00:00", canonical(said), "")


def step(said: dict[str, JSON]) -> Step:
    return Step("user:1", "action_call", said)


@given(PAYLOADS, SITES)
def test_nothing_of_a_payload_is_left_and_the_words_are_those_of_a_redacted_message(
    payload: dict[str, Any], site: dict[str, Any]
) -> None:
    text = payload.get("text")
    if not (isinstance(text, str) and text.strip()):
        site = {"summary": "Plan a trip", **site}  # as every turn of a policy without a text has one
    said = {"policy": "travel.plan", "payload": payload, "site": site, "origin": "user"}
    left = json.loads(redacted(kept(said)))
    assert set(texts(left)) <= {PLACEHOLDER, "", "travel.plan", "user", site["tier"]}
    assert left["payload"].keys() <= {"text", "redacted"}
    stays = {name: site[name] for name in ("tier", "continues", "repeats") if name in site}
    assert {name: site_of(step(left))[name] for name in stays} == stays
    assert words_of(step(left)) == (None if "continues" in site else PLACEHOLDER)
    assert redacted(kept(left)) == canonical(left)
    assert not has_content(kept(left))
