"""What a redaction looks for beyond the steps it takes out: copies of their texts, and who was told the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection

from conversations.erasure.steps import redact
from conversations.ledger.redacted import contains_any
from conversations.models import Step as Row
from conversations.models.step import Told
from tests.conversations.erasure.test_steps import SECRET, seq
from tests.conversations.recorded import Site
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db(transaction=True)


def test_copies_are_named(ann: User, site: Site) -> None:
    """What stands in other steps word for word is told, for a person to look at."""
    prompt = site.ended(ann, says(SECRET, call("report.write", name=SECRET)), says("Done."))
    done = redact(prompt.conversation, [seq(prompt, "text", "1")], ann, "")
    assert done.copies == [seq(prompt, "action_call", "1/0"), seq(prompt, "action_result", "1/0")]


@pytest.mark.parametrize("before", range(8))
def test_a_copy_is_found_wherever_it_stands(before: int) -> None:
    """Among thousands that are looked for, in the midst of words and at the end."""
    holds = contains_any({SECRET, "12345678", *(f"src/{n}/{n * n}.py" for n in range(2000))})
    for text in (SECRET, "12345678", "src/1999/3996001.py"):
        assert holds("-" * before + text)
        assert holds("-" * before + text + "x")
        assert not holds("-" * before + text[1:])
    assert not contains_any(set())("x" * before)


def test_copies_are_looked_for_when_nobody_waits(ann: User, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """That may take long in a long conversation, whose turns must go on."""
    prompt = site.ended(ann, says(SECRET), says("Done."))
    waits: list[bool] = []

    def noted(searched: set[str]) -> Callable[[str], bool]:
        waits.append(connection.in_atomic_block)
        return contains_any(searched)

    monkeypatch.setattr("conversations.erasure.steps.contains_any", noted)
    redact(prompt.conversation, [seq(prompt, "text", "1")], ann, "A password.")
    assert waits == [False]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL counts rows first, and there are none")
def test_who_was_told_the_same_is_found_by_an_index() -> None:
    told = Row.objects.alias(told=Told("payload")).filter(type="action_start", told="0" * 64)
    assert "step_told" in told.explain()
