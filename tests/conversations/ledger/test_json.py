"""Payloads are canonical JSON text, and are hashed as stored."""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User

from agents.engine.interfaces.journal import Record
from agents.engine.ledger import Step, canonical
from conversations.ledger.journal import append
from conversations.ledger.place import chain_digest
from conversations.ledger.reading import read_steps
from conversations.ledger.redacted import sha256
from conversations.models import Step as Row
from conversations.prompts.start import start_conversation, start_prompt
from tests.conversations.recorded import place, record, said

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e16, "1e+16"),
        (10**16, "10000000000000000"),
        (-0.0, "-0.0"),
        (0.1 + 0.2, "0.30000000000000004"),
        (2**63, "9223372036854775808"),
        ("\x00", r'"\u0000"'),
        ("\ud800", r'"\ud800"'),
        ("\u00e9\U0001f600\u2028", r'"\u00e9\ud83d\ude00\u2028"'),
        ({"b": 1, "a": [None, True, {"\u00e9": ""}]}, r'{"a":[null,true,{"\u00e9":""}],"b":1}'),
    ],
)
def test_what_went_in_comes_out(ann: User, value: object, text: str) -> None:
    """What `jsonb` would change or refuse is stored as it is, and the chain is over that text."""
    prompt = start_prompt(start_conversation(ann), ann, "Go.")
    at = place(prompt)
    append(at, record(prompt, at, Step("tool:x", "state", {"plugin": "x", "value": value})))
    row = Row.objects.get(seq=2)
    assert row.payload == f'{{"plugin":"x","value":{text}}}'
    read = read_steps(prompt.conversation_id, prompt.pk)[1]
    assert read.payload == {"plugin": "x", "value": value}
    assert canonical(read.payload) == row.payload
    assert row.digest == chain_digest(at.head, read, prompt.pk, sha256(row.payload))


def test_the_chain_is_over_every_part_of_a_step(ann: User) -> None:
    step = Step("a", "t", {}, "p", 2, datetime(2026, 1, 1, tzinfo=UTC).isoformat())
    links = {
        chain_digest("h", step, 1, sha256("{}")),
        chain_digest("i", step, 1, sha256("{}")),
        chain_digest("h", step, 2, sha256("{}")),
        chain_digest("h", step, 1, sha256("[]")),
        *(
            chain_digest("h", changed, 1, sha256("{}"))
            for changed in (
                replace(step, actor="b"),
                replace(step, type="u"),
                replace(step, path="q"),
                replace(step, id=3),
                replace(step, time="2026-01-02T00:00:00+00:00"),
                replace(step, actor="a\np", path=""),
            )
        ),
    }
    assert len(links) == 10
    content = hashlib.sha256(b"{}").hexdigest()
    whole = json.dumps(["h", 2, 1, "p", "a", "t", step.time, content], separators=(",", ":"))
    assert chain_digest("h", step, 1, sha256("{}")) == hashlib.sha256(whole.encode()).hexdigest()


def test_a_time_without_microseconds_comes_back_as_it_was(ann: User) -> None:
    prompt = start_prompt(start_conversation(ann), ann, "Go.")
    at, noon = place(prompt), datetime(2026, 1, 5, 12, tzinfo=UTC).isoformat()
    new = record(prompt, at, said())
    append(at, Record(tuple(Step(s.actor, s.type, s.payload, s.path, s.id, noon) for s in new.steps)))
    assert read_steps(prompt.conversation_id, prompt.pk)[1].time == noon
