"""Choosing tools for a limited room: pure functions, and what holds of them whatever the tools."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.tools.tool import Tool, by_category
from agents.plugins.tools.choice import (
    FIND,
    FOR_ROOM,
    ToolChoice,
    choice_with_room,
    first_choice,
    is_full,
    next_choice,
    room_beside_others,
    unless_same,
)
from agents.plugins.tools.finding import ALL_OFFERED, LATER, NOW, TOO_LARGE, find_in
from agents.plugins.tools.fitting import SHORT, first_paragraph, first_sentence, fit, forms, ranked, words_in
from agents.plugins.tools.tools import find
from tests.plugins.many_tools import GARDEN, KITCHEN, made, numbered
from tests.texts import TEXTS

MANY = numbered(40)
ROOM_FOR_TEN = sum(forms(tool)[-1].bytes for tool in MANY[:10])


def named(*tools: Tool) -> dict[str, Tool]:
    """These tools, and the one that finds others, in their fixed order."""
    return {tool.name: tool for tool in by_category([*tools, find])}


def began(limit: int = ROOM_FOR_TEN, *tools: Tool) -> ToolChoice:
    return first_choice(named(*(tools or MANY)), limit, None)


# Descriptions


@given(st.one_of(st.text(), st.sampled_from(sorted(TEXTS.values()))))
def test_what_is_shorter_is_a_beginning_in_one_line(description: str) -> None:
    paragraph, sentence = first_paragraph(description), first_sentence(description)
    assert "\n" not in paragraph + sentence
    assert len(sentence) <= min(SHORT, len(paragraph))
    assert " ".join(description.split()).startswith(paragraph)
    assert paragraph.startswith(sentence.removesuffix("…"))
    assert bool(sentence) == bool(description.split())


def test_a_description_has_three_forms_at_most() -> None:
    described = [form.tool.description for form in forms(made("a", "Cut, e.g. roses"))]
    assert described[1:] == ["Cut, e.g. roses. It takes its time.", "Cut, e.g. roses."]
    sizes = [form.bytes for form in forms(made("a"))]
    assert sizes == sorted(sizes, reverse=True)
    (only,) = forms(made("b").__class__(**{**vars(made("b")), "description": "Short."}))
    assert only.tool.description == "Short."
    assert first_sentence("word " * 40) == f"{'word ' * 18}word…"


# What fits


@given(st.lists(st.lists(st.integers(1, 90), min_size=1, max_size=3), max_size=12), st.integers(-10, 400))
def test_what_fits_has_room_and_the_first_comes_first(sizes: list[list[int]], room: int) -> None:
    """At their shortest as many as the order allows; nobody is described more fully than there is room."""
    named = {str(n): sorted(each, reverse=True) for n, each in enumerate(sizes)}
    levels = fit(named, room)
    assert sum(named[name][level] for name, level in levels.items()) <= max(room, 0)
    left = room
    for name, each in named.items():
        assert (name in levels) == (each[-1] <= left)
        left -= each[-1] if name in levels else 0
    everything = fit(named, room, set(named))
    assert everything.keys() == named.keys()


def test_the_important_come_first_then_those_that_the_words_are_about() -> None:
    roses, eggs, cook = made("roses.cut", "Cut roses"), made("eggs.boil", "Boil an egg"), made("cook", "Cook things")
    urgent = made("urgent", priority=1)
    assert ranked([cook, eggs, roses, urgent], "Boil two eggs!") == [urgent, eggs, cook, roses]
    assert ranked([cook, eggs, roses], "the rose, please") == [roses, cook, eggs]
    assert ranked([cook, eggs, roses], None, pushed={"roses.cut"}) == [roses, cook, eggs]
    assert words_in("Two_eggs, EGGS of the glass") == {"two", "egg", "glas"}


def test_a_word_that_many_tools_have_counts_less() -> None:
    common = [made(f"file.{name}", "Handle a file") for name in "abcd"]
    rare = made("chart", "Draw a chart")
    assert ranked([*common, rare], "a chart of this file")[0] is rare


# The first choice


def test_all_are_offered_whole_if_there_is_room_and_nothing_needs_to_be_found() -> None:
    limit = sum(forms(tool)[0].bytes for tool in MANY)
    assert began(limit) == ToolChoice(chosen=[tool.name for tool in MANY])
    assert began(limit - 1).shortened


def test_descriptions_are_shortened_before_a_tool_is_left_out() -> None:
    shortest = sum(forms(tool)[-1].bytes for tool in MANY)
    tight = began(shortest)
    assert (tight.chosen, tight.left_out) == ([tool.name for tool in MANY], [])
    assert set(tight.shortened.values()) == {2}
    looser = began(shortest * 2)
    assert looser.left_out == []
    assert looser.shortened.get("work.000", 0) < looser.shortened["work.039"]
    assert looser.bytes(named(*MANY)) <= room_beside_others(shortest * 2)
    least = began(shortest - 1)
    assert least.left_out
    assert FIND in least.chosen


def test_the_order_is_by_category_whatever_came_first() -> None:
    """Important tools are in, and stand where they always stand."""
    rose, soup = made("a.rose", category=GARDEN), made("b.soup", category=KITCHEN, priority=-1)
    choice = began(ROOM_FOR_TEN, *MANY, rose, soup, made("z.last", priority=9))
    assert choice.chosen[:3] == ["a.rose", FIND, "work.000"]
    assert choice.chosen[-1] == "z.last"
    assert "b.soup" in choice.left_out


def test_the_tool_that_finds_others_always_has_room() -> None:
    assert began(1, *MANY).chosen == [FIND]


# The next ones


def test_nothing_changes_while_nothing_changes() -> None:
    choice = began()
    again = unless_same(choice, next_choice(choice, named(*MANY), ROOM_FOR_TEN, {}))
    assert again is choice
    went = choice.model_copy(update={"gone": {"work.040": "nothing offers it any more"}})
    assert next_choice(went, named(*MANY), ROOM_FOR_TEN, {}).gone == {}  # since that change, nothing went


def test_what_is_new_comes_last_while_there_is_room() -> None:
    choice, new = began(), [made(f"a{n}") for n in range(9)]
    tools = named(*MANY, *new)
    later = next_choice(choice, tools, ROOM_FOR_TEN, {}, pushed={"a8"})
    assert later.offered[: len(choice.offered)] == choice.offered
    assert "a8" in later.added
    assert 0 < len(later.added) < 9
    assert later.wanted == []
    assert set(later.offered) | set(later.left_out) == set(tools)
    full = next_choice(later, named(*MANY, *new, *(made(f"b{n}") for n in range(5))), 1, {}, pushed={"b1"})
    assert (full.added, full.wanted) == (later.added, [])
    assert full.offered == later.offered, "nothing goes for room"


def test_what_is_pushed_without_room_waits_and_gets_it_from_others_between_turns() -> None:
    choice = began()
    pushed = [made(f"a{n}") for n in range(5)]
    tools = named(*MANY, *pushed)
    waiting = next_choice(choice, tools, ROOM_FOR_TEN, {}, pushed={tool.name for tool in pushed})
    assert waiting.wanted
    assert is_full(waiting, tools, ROOM_FOR_TEN)
    used = choice.chosen[3]
    turned = choice_with_room(waiting, tools, ROOM_FOR_TEN, text=None, used={used})
    assert set(turned.added) >= {tool.name for tool in pushed}
    assert used in turned.chosen
    assert set(turned.gone.values()) == {FOR_ROOM}
    assert turned.gone.keys() <= set(turned.left_out)
    assert turned.bytes(tools) <= room_beside_others(ROOM_FOR_TEN)
    assert not is_full(turned, tools, ROOM_FOR_TEN)
    assert turned.offered == [name for name in [*waiting.offered, *waiting.wanted] if name in turned.offered]


def test_what_nobody_offers_any_more_goes_with_the_reason_and_comes_back_at_the_end() -> None:
    choice = began()
    first = "work.000"
    fewer = named(*(tool for tool in MANY if tool.name != first))
    gone = unless_same(choice, next_choice(choice, fewer, ROOM_FOR_TEN, {first: "switched off"}))
    assert gone.gone == {first: "switched off"}
    back = unless_same(gone, next_choice(gone, named(*MANY), ROOM_FOR_TEN, {}))
    assert back.offered == [*gone.offered, first]
    assert back.gone == {}


STEPS = st.lists(
    st.tuples(
        st.booleans(),
        st.sets(st.integers(0, 29), max_size=6),
        st.sets(st.integers(0, 29), max_size=4),
        st.lists(st.sampled_from(["work", "003", "004 005 006", "017", "cut", ""]), max_size=2),
        st.sampled_from([200, 900, 2500, 9000]),
    ),
    min_size=1,
    max_size=8,
)


@given(STEPS)
def test_each_request_begins_as_the_one_before_unless_it_is_on_record(steps: list[Any]) -> None:
    """Whatever is pushed, withheld, found or limited: what is gone has a reason, all else keeps its place, and only
    between turns does anything go for room. What is offered and what is left out are all there is.
    """
    every = [*numbered(25), *(made(f"cut.{n}", category=GARDEN, priority=n % 2) for n in range(5))]
    before = ToolChoice()
    for new_turn, missing, pushed_at, searches, limit in steps:
        tools = named(*(tool for n, tool in enumerate(every) if n not in missing))
        pushed = {every[n].name for n in pushed_at}
        if not before.offered:
            choice = first_choice(tools, limit, "Cut.", pushed)
        else:
            why = dict.fromkeys(before.offered, "withheld")
            choice = next_choice(before, tools, limit, why, pushed)
            if new_turn and is_full(choice, tools, limit):
                choice = choice_with_room(choice, tools, limit, text="Cut.", pushed=pushed)
            choice = unless_same(before, choice)
            stayed = [name for name in before.offered if name in choice.offered]
            assert choice.offered[: len(stayed)] == stayed
            assert set(before.offered) - set(choice.offered) <= choice.gone.keys()
            assert all(choice.shortened.get(name) == before.shortened.get(name) for name in stayed)
            assert new_turn or choice is before or FOR_ROOM not in choice.gone.values()
            added = [tools[name] for name in choice.offered if name not in stayed and name != FIND]
            assert not added or choice.bytes(tools) <= limit + forms(find)[0].bytes
        assert sorted([*choice.offered, *choice.left_out]) == sorted(tools if choice.left_out else choice.offered)
        assert not choice.left_out or FIND in choice.offered
        assert ToolChoice.model_validate(choice.model_dump()) == choice
        left_out = {name: tools[name] for name in choice.left_out}
        for words in searches:
            told = find_in(choice, left_out, words, limit=limit, room=limit - choice.bytes(tools))
            assert all(name.replace(".", "_") in told for name in left_out if name in words_in(words))
        before = choice


# Finding


def test_what_is_found_is_promised_only_if_there_is_room() -> None:
    choice, tools = began(), named(*MANY)
    left_out = {name: tools[name] for name in choice.left_out}
    room = ROOM_FOR_TEN - choice.bytes(tools)
    told = find_in(choice, left_out, "the work", limit=ROOM_FOR_TEN, room=room).splitlines()
    assert told[:2] == [NOW, f"- {choice.left_out[0].replace('.', '_')}: Do {choice.left_out[0]}."]
    assert told[-1] == f"{len(left_out) - 5} more match less well: other words may find them."
    assert LATER in told
    promised, postponed = told[1 : told.index(LATER)], told[told.index(LATER) + 1 : -1]
    later = next_choice(choice, tools, ROOM_FOR_TEN, {})
    assert [f"- {name.replace('.', '_')}: Do {name}." for name in later.added] == promised
    assert [f"- {name.replace('.', '_')}: Do {name}." for name in later.wanted] == postponed
    assert (
        find_in(choice, left_out, "nonsense", limit=9, room=9)
        == f"None of the {len(left_out)} other tools matches these words."
    )
    assert TOO_LARGE in find_in(choice, left_out, "work", limit=9, room=9)


def test_what_matches_much_less_is_not_found_with_the_best() -> None:
    choice, tools = began(), named(*MANY, made("chart.show", "Show a chart"))
    left_out = {name: tools[name] for name in [*choice.left_out, "chart.show"]}
    told = find_in(choice, left_out, "show a chart of the work", limit=ROOM_FOR_TEN, room=ROOM_FOR_TEN)
    assert told.splitlines()[:2] == [NOW, "- chart_show: Show a chart."]
    assert choice.wanted == ["chart.show"]
    assert find_in(choice, left_out, "of the", limit=9, room=9).startswith("None of the")


@pytest.mark.parametrize("words", ["work", "xyz"])
def test_nothing_is_found_where_nothing_is_left_out(words: str) -> None:
    assert find_in(ToolChoice(), {}, words, limit=1, room=1) == ALL_OFFERED
