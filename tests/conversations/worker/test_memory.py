"""Memory in real turns: saved with an approval, told of in later conversations, gone from the next round on."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from pydantic import BaseModel

from agents.engine.errors import ToolError
from agents.engine.interfaces.services import PlainServices
from agents.engine.secrets import HIDDEN, keep_secret
from agents.engine.tools.tool import Tool, ToolCall
from agents.models import Memory
from agents.plugins.memory import keeping
from agents.plugins.memory.keeping import CannotKeep
from agents.plugins.memory.tools import TEXT_MOST, NewMemory, Which, forget, save
from conversations.approvals.decisions import decide
from conversations.models import Step as Row
from conversations.worker.kept import Kept
from tests.conversations.recorded import in_this_thread, pending
from tests.conversations.remembering import (
    BIKE,
    CAT,
    DONE,
    SAVE,
    TEA,
    Remembering,
    approval,
    errors,
    keep,
    offered,
    texts,
    told,
    version,
    while_reading,
)
from tests.conversations.worker.test_words import run
from tests.engine.support import call, results_in, says

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Remembering:
    return Remembering(monkeypatch)


# Saving and being told


def test_what_was_approved_is_told_in_the_next_conversation_that_is_about_it(site: Remembering, ann: User) -> None:
    prompt = site.runs(ann, SAVE, DONE)
    (gate,) = pending(prompt)
    assert approval(gate).reason == f"Remember in later conversations: {TEA}"
    assert not Memory.objects.exists()
    site.approves(prompt, ann)
    site.works()
    kept = Memory.objects.get()
    assert (kept.user, kept.text, kept.pinned, kept.prompt) == (ann, TEA, False, prompt.pk)
    assert results_in(site.asked[-1]) == [f"Memory {kept.pk} is saved."]
    keep(ann, BIKE)
    site.says("Which tea shall we drink?").runs(ann, DONE)
    assert f'- {kept.pk}: "{TEA}"' in told(site.asked[0])
    assert BIKE not in site.asked[0].system


def test_pinned_ones_are_told_whatever_it_is_about_and_stand_first(site: Remembering, ann: User) -> None:
    keep(ann, CAT, BIKE, pinned=True)
    keep(ann, TEA)
    site.says("Tea?").runs(ann, DONE)
    places = [told(site.asked[0]).index(text) for text in (BIKE, CAT, TEA)]
    assert places == sorted(places)
    assert offered(site.asked[0]) == {"memory_save", "memory_search", "memory_forget"}


def test_a_person_without_memories_is_told_nothing_and_may_begin(site: Remembering, ann: User, kim: User) -> None:
    keep(kim, TEA, pinned=True)
    site.says("Tea?").runs(ann, DONE)
    assert told(site.asked[0]) == ""
    assert "memory_save" in offered(site.asked[0])


# Saving again


def test_the_same_text_is_known_and_the_same_call_saves_once(site: Remembering, ann: User) -> None:
    (first,) = keep(ann, TEA)
    prompt = site.ended(ann, SAVE, DONE)
    assert results_in(site.asked[-1]) == [f"Known already, as memory {first.pk}."]
    once = keeping.save(ann.pk, BIKE, prompt=prompt.pk, key="k")
    again = keeping.save(ann.pk, BIKE + " Very red.", prompt=prompt.pk, key="k")
    assert (once.new, again.new, again.memory.pk) == (True, False, once.memory.pk)
    assert texts(ann) == {TEA, BIKE}


def test_a_pin_that_was_approved_is_kept_though_the_text_is_known(site: Remembering, ann: User) -> None:
    (tea,) = keep(ann, TEA)
    before = version(ann)
    prompt = site.runs(ann, says("", call("memory.save", text=f" {TEA}\n", pinned=True)), DONE)
    site.approves(prompt, ann)
    site.works()
    assert results_in(site.asked[-1]) == [f"Known already, as memory {tea.pk}. It is pinned now."]
    assert Memory.objects.get().pinned
    assert version(ann) == before + 1
    assert keep(ann, TEA)[0].pinned, "not asking for a pin takes none away"


class InThisThread(PlainServices):
    async def look_up(self, function: Any, *args: Any) -> Any:
        return await in_this_thread(function, *args)


def attempted(tool: Tool, asked: BaseModel, user: User, attempt: int, reason: str = "") -> Any:
    """What this attempt of a call gives; its person was asked about it in these words."""
    services = InThisThread(user.pk)
    given: Any = {"key": "k", "reason": reason, "attempt": attempt}
    return async_to_sync(tool.function)(ToolCall(tool.name, asked, user.pk, services, "1/0", **given))


def test_a_call_that_runs_again_after_a_crash_says_what_it_said_the_first_time(ann: User) -> None:
    """Its worker died between the effect and its record."""
    first, second = (attempted(save, NewMemory(text=TEA, pinned=False), ann, n) for n in (1, 2))
    (kept,) = Memory.objects.all()
    assert first == second == f"Memory {kept.pk} is saved."
    asked = f"Forget memory {kept.pk}: {TEA}"
    first, second = (attempted(forget, Which(id=kept.pk), ann, n, asked) for n in (1, 2))
    assert first == second == f"Memory {kept.pk} is forgotten."


def test_a_memory_that_nobody_was_asked_about_was_not_forgotten_by_an_attempt_before(ann: User) -> None:
    for attempt in (1, 2):
        with pytest.raises(ToolError, match=r"There is no memory 7\. Nothing was forgotten\."):
            attempted(forget, Which(id=7), ann, attempt)


def test_a_person_keeps_a_thousand_at_most(site: Remembering, ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (Memory.MOST, Memory.TEXT_MOST, TEXT_MOST) == (1_000, 2_000, 2_000)
    monkeypatch.setattr(Memory, "MOST", 2)
    keep(ann, BIKE, CAT)
    prompt = site.ended(ann, SAVE, DONE)
    why = "Nothing was saved. There are 2 memories, which is the most. Forget some of them first."
    assert errors(prompt) == [("refused", why)]
    assert texts(ann) == {BIKE, CAT}


@pytest.mark.parametrize("text", ["", " \n ", "x" * 2_001])
def test_a_text_that_is_none_is_refused_and_nobody_is_asked(site: Remembering, ann: User, text: str) -> None:
    with pytest.raises(CannotKeep):
        keeping.save(ann.pk, text)
    prompt = site.runs(ann, says("", call("memory.save", text=text, pinned=False)), DONE)
    assert [code for code, _ in errors(prompt)] == ["invalid_input"]
    assert not Memory.objects.exists()


def test_a_secret_of_the_site_is_not_kept(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.engine.secrets._known", [])
    keep_secret(["sk-canary-4711-model"])
    assert keep(ann, "My key is sk-canary-4711-model.")[0].text == f"My key is {HIDDEN}."


def test_somebody_who_may_not_use_the_site_any_more_keeps_nothing_new(ann: User) -> None:
    keep(ann, TEA)
    User.objects.filter(pk=ann.pk).update(is_active=False)
    with pytest.raises(CannotKeep, match="no longer use the site"):
        keeping.save(ann.pk, BIKE)
    assert texts(ann) == {TEA}


# Searching and forgetting


def test_the_model_finds_by_words_and_forgets_by_number(site: Remembering, ann: User) -> None:
    tea, bike = keep(ann, TEA, BIKE)
    look = says("", call("memory.search", words="tea"), call("memory.search"), call("memory.search", words="zebra"))
    prompt = site.runs(ann, look, says("", call("memory.forget", id=tea.pk)), DONE)
    by_words, all_of_them, nothing = results_in(site.asked[1])
    assert by_words == f'{tea.pk}: "{TEA}"'
    assert all_of_them == f'{bike.pk}: "{BIKE}"\n{tea.pk}: "{TEA}"'
    assert nothing.startswith("Nothing is remembered about that.")
    (gate,) = pending(prompt)
    assert approval(gate).reason == f"Forget memory {tea.pk}: {TEA}"
    site.approves(prompt, ann)
    site.works()
    assert texts(ann) == {BIKE}
    assert results_in(site.asked[-1])[-1] == f"Memory {tea.pk} is forgotten."


def test_nobody_is_asked_about_a_memory_that_is_not_there(site: Remembering, ann: User, kim: User) -> None:
    (others,) = keep(kim, TEA)
    for number in (987_654, others.pk):
        prompt = site.runs(ann, says("", call("memory.forget", id=number)), DONE)
        assert prompt.state == "completed"
        assert errors(prompt) == [("not_found", f"There is no memory {number}. Nothing was forgotten.")]
    assert texts(kim) == {TEA}


def test_only_what_the_card_showed_is_forgotten(site: Remembering, ann: User) -> None:
    tea, bike = keep(ann, TEA, BIKE)
    prompt = site.runs(ann, says("", call("memory.forget", id=tea.pk)), DONE)
    keeping.change(ann.pk, tea.pk, "I prefer coffee.", pinned=False)
    site.approves(prompt, ann)
    site.works()
    assert [code for code, _ in errors(prompt)] == ["changed_since"]
    assert texts(ann) == {"I prefer coffee.", BIKE}

    edited = site.runs(ann, says("", call("memory.forget", id=tea.pk)), DONE)
    (gate,) = pending(edited)
    decide(gate.pk, ann, "approve", digest=gate.digest, via="page", input={"id": bike.pk})
    site.works()
    assert [code for code, _ in errors(edited)] == ["changed_since"]
    assert texts(ann) == {"I prefer coffee.", BIKE}


def test_a_forgotten_one_is_gone_from_the_next_round_of_a_running_turn(site: Remembering, ann: User) -> None:
    """Though nothing was recorded in between: what is told is read anew each round."""
    tea, _ = keep(ann, TEA, BIKE, pinned=True)
    reads = [says("", call("fx.read", a=number)) for number in (1, 2)]
    prompt = site.starts(ann, *reads, DONE)
    with while_reading(site, lambda: None, lambda: keeping.forget(ann.pk, tea.pk)):
        run(prompt, Kept())
    assert [TEA in told(request) for request in site.asked] == [True, True, False]
    assert all(BIKE in told(request) for request in site.asked)
    snapshots = Row.objects.filter(prompt=prompt, type="action_start", path__in=["1", "3"]).order_by("seq")
    first, last = (row.content["snapshot"] for row in snapshots)
    assert first != last, "what the first round saw stays in the record"


def test_a_changed_one_is_told_as_it_is_now(site: Remembering, ann: User) -> None:
    (tea,) = keep(ann, TEA, pinned=True)
    prompt = site.starts(ann, says("", call("fx.read", a=1)), DONE)
    with while_reading(site, lambda: keeping.change(ann.pk, tea.pk, "I prefer coffee.", pinned=True)):
        run(prompt, Kept())
    assert [TEA in told(request) for request in site.asked] == [True, False]
    assert "I prefer coffee." in told(site.asked[1])
