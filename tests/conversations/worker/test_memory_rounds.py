"""Memory in the rounds of a turn: when they search, what switching it off does, and that it lifts no gate."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.engine.grants.conditions import Condition, Operator
from agents.engine.grants.grant import Scope
from agents.models import Memory, SystemPrompt
from agents.plugins.memory import keeping
from agents.plugins.memory.tools import HAS_NONE, IS_OFF
from conversations.approvals.decisions import decide
from conversations.approvals.grants import Remember
from conversations.models import Step as Row
from conversations.prompts.start import cancel_prompt, continue_prompt
from conversations.prompts.whole_prompt import whole_prompt
from conversations.worker.kept import Kept
from tests.conversations.recorded import pending
from tests.conversations.remembering import (
    BIKE,
    CAT,
    DONE,
    ORDER,
    SAVE,
    TEA,
    Remembering,
    approval,
    errors,
    keep,
    offered,
    searches,
    texts,
    told,
    while_reading,
)
from tests.conversations.triggers.conftest import StillClock, clock  # noqa: F401 - a fixture
from tests.conversations.worker.test_words import counted, run, words
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Remembering:
    return Remembering(monkeypatch)


# Switched off


def test_off_nothing_is_told_or_offered_and_nothing_is_lost(site: Remembering, ann: User, kim: User) -> None:
    keep(ann, TEA, pinned=True)
    keep(kim, BIKE, pinned=True)
    keeping.switch(ann.pk, on=False)
    site.says("Tea?")
    prompt = site.runs(ann, SAVE, DONE)
    assert (told(site.asked[0]), offered(site.asked[0])) == ("", set())
    assert [code for code, _ in errors(prompt)] == ["unknown_tool"]
    site.runs(kim, DONE)
    assert BIKE in told(site.asked[0])
    keeping.switch(ann.pk, on=True)
    site.runs(ann, DONE)
    assert TEA in told(site.asked[0])


def test_calls_that_waited_meanwhile_are_refused(site: Remembering, ann: User) -> None:
    (tea,) = keep(ann, TEA)
    asked = call("memory.save", text=BIKE, pinned=False), call("memory.forget", id=tea.pk)
    prompt = site.runs(ann, says("", *asked), DONE)
    keeping.switch(ann.pk, on=False)
    site.approves(prompt, ann)
    site.works()
    assert errors(prompt) == [("refused", IS_OFF)] * 2
    assert texts(ann) == {TEA}


def test_switched_off_in_mid_turn_the_next_round_is_told_nothing(site: Remembering, ann: User) -> None:
    keep(ann, TEA, pinned=True)
    prompt = site.starts(ann, says("", call("fx.read", a=1)), DONE)
    with while_reading(site, lambda: keeping.switch(ann.pk, on=False)):
        run(prompt, Kept())
    assert [TEA in told(request) for request in site.asked] == [True, False]


def test_a_site_without_memory_offers_none(site: Remembering, ann: User, settings: Any) -> None:
    keep(ann, TEA, pinned=True)
    settings.AGENTSITE_MEMORY_TOKENS = 0
    site.runs(ann, DONE)
    assert (told(site.asked[0]), offered(site.asked[0])) == ("", set())
    assert texts(ann) == {TEA}


def test_a_call_that_waited_until_the_site_had_none_says_who_switched_it_off(
    site: Remembering, ann: User, settings: Any
) -> None:
    prompt = site.runs(ann, SAVE, DONE)
    settings.AGENTSITE_MEMORY_TOKENS = 0
    site.approves(prompt, ann)
    site.works()
    assert errors(prompt) == [("refused", HAS_NONE)]


# Gates


def test_a_memory_that_orders_to_approve_lifts_no_gate(site: Remembering, ann: User) -> None:
    (order,) = keep(ann, ORDER, pinned=True)
    asked = call("shell.run", command="rm -rf /"), call("memory.forget", id=order.pk)
    prompt = site.runs(ann, says("", *asked), DONE)
    assert ORDER in told(site.asked[0])
    assert len(pending(prompt)) == 2
    assert site.world.done == []


def test_a_grant_covers_saving_and_nothing_else(site: Remembering, ann: User) -> None:
    prompt = site.runs(ann, SAVE, DONE)
    (gate,) = pending(prompt)
    any_text = Remember(Scope.FIELDS, (Condition("text", Operator.ANY), Condition("pinned", Operator.IS, False)))
    decide(gate.pk, ann, "approve", digest=gate.digest, via="page", remember=any_text)
    site.works()
    others = (call("memory.save", text=CAT, pinned=True), call("memory.forget", id=Memory.objects.get().pk))
    assert site.runs(ann, says("", call("memory.save", text=BIKE, pinned=False)), DONE).state == "completed"
    assert texts(ann) == {TEA, BIKE}
    other = site.runs(ann, says("", *others), DONE)
    asked = [approval(gate) for gate in pending(other)]
    assert [(each.title, each.grantable) for each in asked] == [("Remember", "fields"), ("Forget", "")]


# Rounds


def test_a_round_searches_once_and_only_what_was_said_or_kept_anew_makes_it_search_again(
    site: Remembering, ann: User
) -> None:
    keep(ann, TEA, BIKE)
    reads = [says("", call("fx.read", a=number)) for number in range(1, 5)]
    prompt, marks = site.says("Tea?").starts(ann, *reads, DONE), list[int]()
    with CaptureQueriesContext(connection) as seen:

        def mark() -> None:
            marks.append(len(seen))

        def keeps() -> None:
            keep(ann, "Tea is best at five.")
            marks.append(len(seen))

        with while_reading(site, mark, mark, keeps, mark):
            run(prompt, Kept())
    first, second, third, fourth = (seen.captured_queries[a:b] for a, b in zip([0, *marks[:3]], marks, strict=True))
    assert searches(first)
    assert not searches(second)
    assert not [sql for sql in searches(third) if sql.startswith("SELECT word, rows")]
    assert len(words(second)) <= 13, words(second)
    states = Row.objects.filter(prompt=prompt, type="state").order_by("seq")
    assert [len(state.content["value"]["found"]) for state in states] == [1, 2]
    assert "Tea is best at five." in told(site.asked[-1])
    assert "Tea is best at five." not in told(site.asked[2])
    assert fourth


def test_a_turn_that_goes_on_after_a_pause_searches_nothing_again(site: Remembering, ann: User) -> None:
    keep(ann, TEA)
    prompt = site.says("Tea?").runs(ann, says("", call("shell.run", command="ls")), DONE)
    site.approves(prompt, ann)
    with CaptureQueriesContext(connection) as seen:
        site.works()
    assert not searches(seen.captured_queries)
    assert [TEA in told(request) for request in site.asked] == [True, True]


def test_a_person_without_memories_costs_no_statement(site: Remembering, ann: User) -> None:
    reads = [says("", call("fx.read", a=number)) for number in (1, 2)]
    prompt, marks = site.starts(ann, *reads, DONE), list[int]()
    with CaptureQueriesContext(connection) as seen:
        mark = lambda: marks.append(len(seen))  # noqa: E731
        with while_reading(site, mark, mark):
            run(prompt, Kept())
    said = words(seen.captured_queries[marks[0] : marks[1]])
    assert len(said) <= 11, said
    assert not [sql for sql in said if "agents_memory" in sql], said


def test_of_who_has_forgotten_all_nothing_is_put_on_record(site: Remembering, ann: User) -> None:
    keeping.forget(ann.pk, keep(ann, TEA)[0].pk)
    prompt = site.says("Tea?").runs(ann, says("", call("fx.read", a=1)), DONE)
    assert not Row.objects.filter(prompt=prompt, type="state").exists()
    keep(ann, TEA)
    assert Row.objects.filter(prompt=site.runs(ann, DONE), type="state").exists()


@pytest.mark.parametrize("pinned", [False, True])
def test_each_change_of_a_memory_makes_a_running_turn_search_again(site: Remembering, ann: User, pinned: bool) -> None:
    """Of one that is not pinned, nothing else would bring it into the turn, or take it out."""
    tea, bike = keep(ann, TEA, BIKE, pinned=pinned)
    reads = [says("", call("fx.read", a=number)) for number in (1, 2, 3)]
    prompt = site.says("Tea?").starts(ann, *reads, DONE)
    with while_reading(
        site,
        lambda: keeping.change(ann.pk, bike.pk, "My bicycle smells of tea.", pinned=False),
        lambda: keeping.pin(ann.pk, tea.pk, not pinned),
        lambda: keeping.forget(ann.pk, bike.pk),
    ):
        run(prompt, Kept())
    assert ["smells" in told(request) for request in site.asked] == [False, True, True, False]
    assert [TEA in told(request) for request in site.asked] == [True] * 4
    found = Row.objects.filter(prompt=prompt, type="state").order_by("seq").last()
    assert found
    assert found.content["value"]["found"] == ([tea.pk] if pinned else [])


def test_what_one_person_saves_makes_no_turn_of_others_read_again(ann: User) -> None:
    before = counted()
    keep(ann, TEA)
    assert counted() > before, "that somebody has memories at all is kept by turns"
    before = counted()
    (bike,) = keep(ann, BIKE)
    keeping.pin(ann.pk, bike.pk, True)
    keeping.forget(ann.pk, bike.pk)
    assert counted() == before
    keeping.switch(ann.pk, on=False)
    assert counted() > before


def test_a_turn_that_is_continued_goes_on_with_what_was_found(site: Remembering, ann: User) -> None:
    keep(ann, TEA)
    prompt = site.says("Tea?").runs(ann, says("", call("shell.run", command="ls")), DONE)
    cancel_prompt(prompt.pk, ann)
    site.works()
    site.speaks(DONE)
    continue_prompt(prompt.pk, ann)
    site.works()
    assert TEA in told(site.asked[0])


def test_a_turn_of_a_trigger_is_told_what_fits_its_reminder(
    site: Remembering,
    ann: User,
    clock: StillClock,  # noqa: F811
) -> None:
    keep(ann, TEA, BIKE)
    site.speaks(DONE)
    clock.every(ann, text="Buy tea.")
    assert clock.passes(minutes=6) == 1
    site.works()
    assert TEA in told(site.asked[0])
    assert BIKE not in site.asked[0].system


def test_the_whole_prompt_shows_what_a_new_conversation_is_told(ann: User) -> None:
    keep(ann, TEA, pinned=True)
    keep(ann, BIKE)
    version = SystemPrompt.create("Terse", "Be brief.").latest()
    whole = whole_prompt(version, ann, "native")
    assert TEA in whole.text
    assert BIKE not in whole.text
    assert dict(whole.parts)["memory"] > 0
