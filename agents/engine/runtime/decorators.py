"""Decorators that make an agent of any policy. They are durable: every turn and call goes through the context."""

from __future__ import annotations

from dataclasses import replace

from agents.engine.ledger import Step
from agents.engine.runtime.policy import Action, Context, Decorator, Policy, records_itself


def calls_in(steps: list[Step]) -> list[Step]:
    """Return the calls that an answer asks for."""
    return [step for step in steps if step.type == "action_call"]


def loop_wrapper(max_turns: int) -> Decorator:
    """Run the policy again while it asks for calls, at most `max_turns` times (S112).

    Each turn sees the steps of the earlier ones at the end of `payload["ledger"]`.
    """

    def decorate(policy: Policy) -> Policy:
        @records_itself
        async def looped(action: Action, ctx: Context) -> list[Step]:
            seen: list[Step] = []
            for _ in range(max_turns):
                ledger = action.ledger.extend(seen)
                steps = await policy(replace(action, payload={**action.payload, "ledger": ledger}), ctx)
                seen += steps
                if not calls_in(steps):
                    break
            return seen

        return looped

    return decorate


def invoke_action() -> Decorator:
    """Run every call the policy asks for, in call order, and add the results (S113). Only offered names run (S117)."""

    def decorate(policy: Policy) -> Policy:
        @records_itself
        async def invoking(action: Action, ctx: Context) -> list[Step]:
            steps = await policy(action, ctx)
            done = {step.path for step in steps if step.type == "action_result"}
            for call in calls_in(steps):
                if call.path not in done:
                    steps = [*steps, *await ctx.invoke(call, allowed=action.actions)]
            return steps

        return invoking

    return decorate
