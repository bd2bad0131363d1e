"""What is left to do of what a person asked for: decided anew for each request, from the results so far."""

from __future__ import annotations

import json
from dataclasses import dataclass

from agents.engine.closing import HAD_BEGUN
from agents.providers.demo.samples import sample
from agents.providers.demo.script import Call
from agents.providers.demo.sentences import Sentence
from agents.providers.demo.situation import Result, Situation
from agents.providers.demo.telling import doing
from agents.providers.demo.understanding import Task, is_pronoun, task

NEVER_DONE = ("cancelled", "not_executed")
"""Codes of calls that ended with their turn. Those that had not begun are asked for again when it is gone on with."""


class Unclear(Exception):
    """A request that was understood but for a part of it. The message asks for that part."""


@dataclass(frozen=True)
class Next:
    """The calls to ask for now, with what each does in words.

    Where there are none: the results to tell of, and in whole sentences what was not done.
    """

    calls: tuple[Call, ...] = ()
    doing: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    not_done: tuple[str, ...] = ()


def next_of(steps: list[list[Task]], situation: Situation) -> Next:
    """What to do now. Nothing is asked for twice, whatever came of it; after a failure no further step begins.

    A result that only served another call is not told of. Raises Unclear.
    """
    left = [result for result in situation.done if result.code not in NEVER_DONE or HAD_BEGUN in result.text]
    taken: list[Result] = []
    not_done: list[str] = []
    failed = False
    for tasks in steps:
        if failed:
            not_done.append("I left out what was to come after that.")
            break
        calls: dict[str, tuple[Call, str]] = {}
        for wanted in tasks:
            if result := _take(wanted, left):
                taken.append(result)
                failed = failed or bool(result.code)
            elif isinstance(found := _next_call(wanted, situation), str):
                not_done.append(found)
                failed = True
            else:
                calls.setdefault(repr(found[0]), found)
        if calls:
            return Next(*(tuple(each) for each in zip(*calls.values(), strict=True)))
    return Next(results=(*taken, *(result for result in left if result.code)), not_done=tuple(filter(None, not_done)))


def _take(wanted: Task, left: list[Result]) -> Result | None:
    """The first result that can stand for the task, which it then does for no other.

    Its arguments say nothing: a person may have edited them.
    """
    for result in left:
        if result.name == wanted.sentence.name:
            left.remove(result)
            return result
    return None


def _next_call(wanted: Task, situation: Situation) -> tuple[Call, str] | str:
    """The call that brings the task on, its own or the one before it; or why there is none, "" where that is told."""
    found = ""
    if before := _before(wanted, situation):
        call = _call(before, situation)
        result = situation.result_of(call.name, call.arguments)
        if result is None and call.name in situation.offered:
            return call, doing(before.sentence, call.arguments)
        if result and result.code:
            return ""
        found = result.text if result else ""
    call = _call(wanted, situation, found)
    words = doing(wanted.sentence, call.arguments)
    return (call, words) if call.name in situation.offered else _not_offered(wanted.sentence, words)


def _not_offered(sentence: Sentence, words: str) -> str:
    if sentence.by_name:
        return f"I cannot {words}: no such tool is offered to me here."
    needs = f" The skill `{sentence.skill}` brings it along: it has to be active first." if sentence.skill else ""
    return f"I cannot {words}: the tool `{sentence.tool}` is not offered to me here.{needs}"


def _before(wanted: Task, situation: Situation) -> Task | None:
    """What has to be done first: what the sentence says, or activating the skill that brings the tool."""
    sentence = wanted.sentence
    if sentence.skill and sentence.name not in situation.offered:
        return task(f"activate the skill {sentence.skill}")
    first = sentence.first(wanted.words)
    return task(first) if first else None


def _call(wanted: Task, situation: Situation, found: str = "") -> Call:
    words = wanted.words | ({"found": found} if found else {})
    if is_pronoun(words.get("path", "")):
        words["path"] = _meant(situation)
    sentence, arguments = wanted.sentence, wanted.sentence.arguments(words)
    if sentence.by_name and sentence.name in situation.offered:
        needed = sample(situation.offered[sentence.name]["parameters"])
        if arguments is None or not needed.keys() <= arguments.keys():
            raise Unclear(f"Its input belongs after it, as JSON: `use {sentence.tool} with {json.dumps(needed)}`.")
    return Call(sentence.name, arguments or {})


def _meant(situation: Situation) -> str:
    """The file that "it" stands for."""
    match situation.files:
        case (path,):
            return path
        case ():
            raise Unclear("I do not know which file you mean. Name it, as in `read notes.md`.")
        case many:
            raise Unclear(f"Which file do you mean? There are {', '.join(f'`{path}`' for path in many)}.")
