"""Answers: the steps that a policy returns are checked, and get their places in the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from agents.engine import actors
from agents.engine.ledger import ADDED, Step, action_error, action_result
from agents.engine.paths import join, parent
from agents.engine.view import View, asked_for

MODELS = ("model", "assistant")
"""The actors under which an answer is a model's."""


def placed(answer: object, path: str, policy: str, view: View) -> list[Step]:
    """Return what is recorded of the answer of the call at `path`: what was said, the calls asked for, its one result.

    Steps of this turn's ledger are passed on: the result names the calls they come from. Any other step is new,
    whatever its id and path. Calls get the numbers from 0 that the policy has not used as keys of its own calls. The
    result of a decorated call is that of its last turn, unless there is another. Raises TypeError or ValueError for
    what is no answer, such as None, two results, or a call by somebody else.
    """
    steps = _checked(answer, policy)
    new = [step for step in steps if step not in view]
    old = [step for step in steps if step in view]
    results = [step for step in new if step.type == "action_result"]
    if len(results) > 1:
        raise ValueError(f"the policy {policy!r} returned {len(results)} results; a call has one")
    turns = [step for step in old if step.type == "action_result" and view.is_turn(step.path, path)]
    result = (*results, *map(_as_result, turns[-1:]), action_result("runtime"))[0]
    sources = dict.fromkeys(parent(step.path) if asked_for(step) else step.path for step in old if step not in turns)
    returns = [source for source in sources if source != path and view.result(source)]
    free = _free_paths(path, view)
    said = [
        replace(step, actor=_asker(step, policy), path=next(free))
        if step.type == "action_call"
        else replace(step, path=path)
        for step in new
        if step.type != "action_result"
    ]
    return [*said, replace(result, payload=result.payload | ({"returns": returns} if returns else {}), path=path)]


def _checked(answer: object, policy: str) -> list[Step]:
    if not isinstance(answer, Iterable):
        raise TypeError(f"the policy {policy!r} returned {type(answer).__name__}; it must return a list of steps")
    steps: list[Step] = []
    for step in answer:
        if not isinstance(step, Step):
            raise TypeError(f"the policy {policy!r} returned a {type(step).__name__} among its steps")
        steps.append(step)
    return steps


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


def _as_result(turn: Step) -> Step:
    """Return the result of the last turn as that of the decorated call. A model's has no value but what it said."""
    if turn.failed:
        return action_error(turn.actor, turn.payload["code"], turn.payload["message"])
    if turn.actor in MODELS:
        return action_result("runtime")
    return Step(turn.actor, "action_result", {key: value for key, value in turn.payload.items() if key not in ADDED})
