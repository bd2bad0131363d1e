"""Decorators that make an agent of any policy. They are durable: every turn and call goes through the context.

They work in `ctx.call(action, [..])`, on the definition of a policy, and in both.
"""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import overload

from agents.engine.ledger import Step
from agents.engine.runtime.action import Action
from agents.engine.runtime.marks import is_marked, records_itself
from agents.engine.runtime.policy import Context, Decorator, Policy


def calls_in(steps: list[Step]) -> list[Step]:
    """Return the calls that an answer asks for."""
    return [step for step in steps if step.type == "action_call"]


def takes_turns(policy: Policy) -> Policy:
    """Mark a policy that does nothing but run another as turns, recorded calls of their own."""
    policy.takes_turns = policy  # type: ignore[attr-defined]
    return records_itself(policy)


def in_turns(policy: Policy) -> Policy:
    """Return a policy that runs this one as a turn, a recorded call of its own; one that does so already as it is."""
    if is_marked(policy, "takes_turns"):
        return policy

    @takes_turns
    @wraps(policy)
    async def taking_turns(action: Action, ctx: Context) -> list[Step]:
        return await ctx.take_turn(policy, action)

    return taking_turns


def loop_wrapper(max_turns: int) -> Decorator:
    """Run the policy again while it asks for calls, at most `max_turns` times (S112).

    Each turn sees what was said and the calls of the earlier ones, with their results, at the end of
    `payload["ledger"]`. Raises ValueError unless `max_turns` is a whole number from 1 on.
    """
    given: object = max_turns
    if not isinstance(given, int) or given < 1:
        raise ValueError(f"loop_wrapper needs the most turns, a whole number from 1 on, not {max_turns!r}")

    def decorate(policy: Policy) -> Policy:
        take_turn = in_turns(policy)

        @takes_turns
        @wraps(take_turn)
        async def looped(action: Action, ctx: Context) -> list[Step]:
            said: dict[int, Step] = {}  # by id: a turn may give back what it was given
            steps: list[Step] = []
            for _ in range(max_turns):
                payload = {**action.payload, "ledger": action.ledger.extend(said.values())}
                steps = await take_turn(replace(action, payload=payload), ctx)
                asks = any(call.id not in said for call in calls_in(steps))
                said |= {step.id: step for step in steps if not ctx.is_turn(step)}
                if not asks:
                    break
            return [*said.values(), *filter(ctx.is_turn, steps)]

        return looped

    return decorate


@overload
def invoke_action(policy: None = None) -> Decorator: ...
@overload
def invoke_action(policy: Policy) -> Policy: ...
def invoke_action(policy: Policy | None = None) -> Decorator | Policy:
    """Run every call the policy asks for, in call order, and add the results (S113).

    Only names that are offered run: those in the action's `actions`, and for a root those that `run` was given (S117).
    It may be written with or without parentheses.
    """
    return _invoking if policy is None else _invoking(policy)


def _invoking(policy: Policy) -> Policy:
    take_turn = in_turns(policy)

    @takes_turns
    @wraps(take_turn)
    async def invoking(action: Action, ctx: Context) -> list[Step]:
        steps = await take_turn(action, ctx)
        for call in calls_in(steps):  # one that has its result gives that, and is not run again
            steps = [*steps, *await ctx.invoke(call, allowed=action.actions)]
        return steps

    return invoking
