"""Planning: which calls a person's request still needs, worked out again for each round from the results so far."""

from __future__ import annotations

import json
from dataclasses import dataclass

from agents.engine.closing import HAD_BEGUN
from agents.engine.interfaces.provider import ToolRequest
from agents.providers.demo.samples import sample
from agents.providers.demo.sentences import Sentence
from agents.providers.demo.situation import Result, Situation
from agents.providers.demo.understanding import Task, is_pronoun, task
from agents.providers.demo.wording import describe_call

NEVER_DONE = ("cancelled", "not_executed")
"""Codes of calls that ended with their turn. Those that had not begun are asked for again when the turn continues."""


class Unclear(Exception):
    """A request that was understood except for one part. The message asks for that part."""


@dataclass(frozen=True)
class Plan:
    """The calls to ask for now.

    If there are none: the results to report, and in whole sentences what was not done.
    """

    calls: tuple[ToolRequest, ...] = ()
    results: tuple[Result, ...] = ()
    not_done: tuple[str, ...] = ()


def make_plan(steps: list[list[Task]], situation: Situation) -> Plan:
    """Return what to do now. Nothing is asked for twice, whatever its result; after a failure no further step begins.

    A result that was only needed for another call is not reported. Raises Unclear.
    """
    left = [result for result in situation.done if result.code not in NEVER_DONE or HAD_BEGUN in result.text]
    taken: list[Result] = []
    not_done: list[str] = []
    failed = False
    for tasks in steps:
        if failed:
            not_done.append("I did not go on to the next step.")
            break
        calls: list[ToolRequest] = []
        for wanted in tasks:
            if result := _take(wanted, left):
                taken.append(result)
                failed = failed or bool(result.code)
            elif isinstance(found := _next_call(wanted, situation), str):
                not_done.append(found)
                failed = True
            elif found not in calls:
                calls.append(found)
        if calls:
            return Plan(tuple(calls))
    return Plan(results=(*taken, *(result for result in left if result.code)), not_done=tuple(filter(None, not_done)))


def _take(wanted: Task, left: list[Result]) -> Result | None:
    """Take the first result of the task's tool out of `left` and return it; None if there is none.

    Its arguments are not compared: a person may have edited them.
    """
    for result in left:
        if result.name == wanted.sentence.name:
            left.remove(result)
            return result
    return None


def _next_call(wanted: Task, situation: Situation) -> ToolRequest | str:
    """Return the next call for the task: its own, or the one needed first.

    If there is none, return why not, or "" if the failure is reported with its result.
    """
    found = ""
    if before := _before(wanted, situation):
        call = _call(before, situation)
        result = situation.result_of(call.name, call.arguments)
        if result is None and call.name in situation.offered:
            return call
        if result and result.code:
            return ""
        found = result.text if result else ""
    call = _call(wanted, situation, found)
    return call if call.name in situation.offered else _not_offered(wanted.sentence, call)


def _not_offered(sentence: Sentence, call: ToolRequest) -> str:
    words = describe_call(call.name, call.arguments)
    if sentence.by_name:
        return f"I cannot use `{sentence.tool}`: there is no such tool here."
    needs = f" It needs the skill `{sentence.skill}`, which is not active." if sentence.skill else ""
    return f"I cannot {words}: the tool `{sentence.tool}` is not available here.{needs}"


def _before(wanted: Task, situation: Situation) -> Task | None:
    """Return the task that has to be done first: activating the tool's skill, or what the sentence asks for."""
    sentence = wanted.sentence
    if sentence.skill and sentence.name not in situation.offered:
        return task(f"activate the skill {sentence.skill}")
    first = sentence.first(wanted.words)
    return task(first) if first else None


def _call(wanted: Task, situation: Situation, found: str = "") -> ToolRequest:
    words = wanted.words | ({"found": found} if found else {})
    if is_pronoun(words.get("path", "")):
        words["path"] = _file_meant(situation)
    sentence, arguments = wanted.sentence, wanted.sentence.arguments(words)
    if arguments is None and found:  # what was found first says that there is nothing to do it with
        raise Unclear(found)
    if sentence.by_name and sentence.name in situation.offered:
        needed = sample(situation.offered[sentence.name]["parameters"])
        if arguments is None or not needed.keys() <= arguments.keys():
            raise Unclear(f"Please add the tool's input as JSON: `use {sentence.tool} with {json.dumps(needed)}`.")
    return ToolRequest(sentence.name, arguments or {})


def _file_meant(situation: Situation) -> str:
    """Return the path of the file that "it" stands for. Raises Unclear if there is none, or more than one."""
    match situation.files:
        case (path,):
            return path
        case ():
            raise Unclear("I do not know which file you mean. Please name it, as in `read notes.md`.")
        case many:
            raise Unclear(f"Which file do you mean: {', '.join(f'`{path}`' for path in many)}?")
