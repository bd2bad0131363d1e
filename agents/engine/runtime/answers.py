"""Answers: the steps that a policy returns are checked, and get their places in the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count

from agents.engine import actors
from agents.engine.closing import answer_usage
from agents.engine.ledger import ADDED, JSON, Ledger, Step, action_error, action_result
from agents.engine.paths import join, parent
from agents.engine.runtime.action import Action
from agents.engine.view import BOOKKEEPING, View, asked_for

MODELS = ("model", "assistant")
"""The actors under which an answer is a model's."""


def placed(answer: object, path: str, action: Action, view: View) -> list[Step]:
    """Return what is recorded of the answer of the call at `path`: what was said, the calls asked for, its one result.

    Steps of this turn's ledger are passed on: the result names them, by the answers they come from. Any other step is
    new, whatever its id and path, unless a turn of a decorated policy gives back the ledger that each turn is given.
    Calls get the numbers from 0 that the policy has not used as keys of its own calls.
    Without a result of its own, a decorated call has that of its last turn, and any other that which it passes on as
    its last step. Raises TypeError or ValueError for what is no answer, such as None, two results, a call by somebody
    else, or a step that only the engine writes.
    """
    policy, steps = action.policy, _checked(answer, action.policy)
    told = action.payload.get("ledger") if view.is_turn(path, parent(path)) else None
    given = {id(step) for step in told} if isinstance(told, Ledger) else set()
    new = [step for step in steps if step not in view and id(step) not in given]
    old = [step for step in steps if step in view]
    for step in new:
        _check_new(step, policy)
    results = [step for step in new if step.type == "action_result"]
    if len(results) > 1:
        raise ValueError(f"the policy {policy!r} returned {len(results)} results; a call has one")
    turns = [step for step in old if step.type == "action_result" and view.is_turn(step.path, path)]
    last = [] if turns else [step for step in steps[-1:] if step in old and _of_own_call(step, view)]
    result = (*results, *map(_as_result, [*turns[-1:], *last]), action_result("runtime"))[0]
    returns = _passed_on([step for step in old if step not in (turns if results else [*turns, *last])], path, view)
    free = _free_paths(path, view)
    said = [
        replace(step, actor=_asker(step, policy), path=next(free))
        if step.type == "action_call"
        else replace(step, path=path)
        for step in new
        if step.type != "action_result"
    ]
    return [*said, replace(result, payload=result.payload | ({"returns": returns} if returns else {}), path=path)]


def _of_own_call(step: Step, view: View) -> bool:
    """Whether this is the result of a call that a policy made. Others are part of an answer."""
    call = view.call(step.path)
    return step.type == "action_result" and call is not None and not asked_for(call)


def _passed_on(steps: list[Step], path: str, view: View) -> list[JSON]:
    """Return the names of these steps: the path of an answer that is passed on whole, or with the steps' numbers in it.

    A call that a policy made is no part of any answer, and is not passed on; neither is what stands at its own path.
    """
    numbers: dict[str, list[int]] = {}
    for step in {step.id: step for step in steps}.values():
        source = parent(step.path) if asked_for(step) else step.path
        answer = view.said(source) if source != path and (view.result(source) or not source) else []
        if step in answer:
            numbers.setdefault(source, []).append(answer.index(step))
    ended = {source: list(range(len(view.said(source)))) for source in numbers if view.result(source)}
    return [source if numbers[source] == ended.get(source) else [source, numbers[source]] for source in numbers]


def _checked(answer: object, policy: str) -> list[Step]:
    if not isinstance(answer, Iterable) or isinstance(answer, str | Mapping):
        raise TypeError(f"the policy {policy!r} returned a {type(answer).__name__}; it must return a list of steps")
    steps: list[Step] = []
    for step in answer:
        if not isinstance(step, Step):
            raise TypeError(f"the policy {policy!r} returned a {type(step).__name__} among its steps")
        steps.append(step)
    return steps


def _check_new(step: Step, policy: str) -> None:
    """Raise ValueError for a step that the engine alone writes, or that it could not read again."""
    said, why = step.payload, ""
    noted = step.type == "note" and {"code", "message"} <= said.keys()  # by the engine's own policies
    if step.type in BOOKKEEPING - {"action_call"} and not noted:
        why = f"a step of the type {step.type!r}, which only the engine writes: use another type"
    elif step.type == "action_call" and not (
        isinstance(said.get("policy"), str) and isinstance(said.get("payload"), dict)
    ):
        why = "a call without a `policy` (a name) and a `payload` (a dict): use action_call(actor, name, {...})"
    elif step.type == "action_result" and not ADDED.isdisjoint(said):
        why = f"a result with the key {min(ADDED & said.keys())!r}, which is the engine's own: put it into `output`"
    elif step.type == "text" and not isinstance(said.get("text"), str):
        why = "a text without its `text`: use text(actor, 'Hello.')"
    elif step.type == "state" and not (isinstance(said.get("plugin"), str) and isinstance(said.get("value"), dict)):
        why = "a step of the type 'state', which holds what a plugin keeps: use another type"
    if why:
        raise ValueError(f"the policy {policy!r} returned {why}")


def _free_paths(path: str, view: View) -> Iterator[str]:
    return (place for number in count() if not view.call(place := join(path, number)))


def _asker(call: Step, policy: str) -> str:
    """Return who asks for this call. Raises ValueError unless it is a model, or the policy itself.

    The policy stands there by its bare name: `policy:` marks the calls that a policy makes.
    """
    if call.actor in MODELS:
        return call.actor
    if call.actor in (policy, actors.policy(policy)):
        return policy
    raise ValueError(f"the policy {policy!r} returned a call by {call.actor!r}: only it or a model may ask")


def _as_result(other: Step) -> Step:
    """Return the result of another call as that of this one. An answer of a model has no value but what it said."""
    if other.actor == "model" and other.failed:
        return action_error(other.actor, other.payload["code"], other.payload["message"])
    if answer_usage(other) is not None:
        return action_result("runtime")
    return Step(other.actor, "action_result", {key: value for key, value in other.payload.items() if key not in ADDED})
