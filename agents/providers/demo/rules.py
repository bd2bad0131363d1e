"""The demo model: rules that turn plain requests into calls of any tool. It is not a language model, and says so.

Each answer depends on the request alone: the demo model parses what the person said, subtracts what the results so far
have done, and asks for the rest. `sentences` lists the requests that it understands for each tool.
"""

from __future__ import annotations

from dataclasses import replace

from agents.engine.interfaces.provider import FINAL_ANSWER, ToolRequest
from agents.engine.ledger import JSON
from agents.providers.demo import json_text
from agents.providers.demo.filling import filling
from agents.providers.demo.guide import INTRODUCTION, guide
from agents.providers.demo.planning import Plan, Unclear, make_plan
from agents.providers.demo.refactoring import refactoring
from agents.providers.demo.reply import Reply
from agents.providers.demo.researching import researching
from agents.providers.demo.samples import sample
from agents.providers.demo.showing import showing
from agents.providers.demo.situation import Situation
from agents.providers.demo.summarising import summarising
from agents.providers.demo.understanding import understand
from agents.providers.demo.wire import PIECE_CHARACTERS
from agents.providers.demo.wording import describe_call, describe_result

PAUSE_SECONDS = 0.015
"""The pause between two pieces of an answer, so that people see it stream."""
ANSWER_SECONDS = 1.2
"""The longest time that all pauses of one answer may take together."""

UNASKED = "Nobody asked for anything, so I did nothing."

PARTS = (filling, refactoring, summarising, researching, showing)
"""What answers the requests of workflows, and for what it can show, each of those that it knows."""


def answer(body: dict[str, JSON]) -> Reply:
    """Return the answer: calls to make, a report of their results, or help."""
    asked = json_text.with_tools(body)
    situation = Situation.of(asked or body)
    reply = _reply(situation, calls=1 if asked else None)
    if situation.first and not reply.text.startswith(INTRODUCTION):
        said = (reply.text, INTRODUCTION) if reply.calls else (INTRODUCTION, reply.text)  # lists show the beginning
        reply = replace(reply, text=" ".join(said))
    if asked:
        reply = json_text.with_call_as_text(reply)
    return replace(reply, pause_seconds=_pause(reply))


def _reply(situation: Situation, calls: int | None) -> Reply:
    """`calls`: how many the protocol allows in one answer, if it limits them."""
    for part in PARTS:
        if found := part(situation):
            return found
    steps, final = understand(situation.said), situation.offered.get(FINAL_ANSWER)
    if not steps and (situation.reminder or not (situation.done or final)):
        return Reply(_not_understood(situation))
    try:
        plan = make_plan(steps, situation)
    except Unclear as unclear:
        if not final:
            return Reply(str(unclear))
        plan = Plan()
    if plan.calls:
        *others, last = [describe_call(call.name, call.arguments) for call in plan.calls[:calls]]
        will = f"will {', '.join(others)} and {last}" if others else f"will {last}"
        asked = {each.sentence.name for step in steps for each in step}
        direct = all(call.name in asked for call in plan.calls[:calls])
        why = ", as you asked" if direct else ": what you asked for needs that first"
        return Reply(f"{'Next I' if situation.done else 'I'} {will}{why}.", plan.calls[:calls])
    if final:  # a made-up answer of the form that is wanted
        return Reply("This is my answer.", (ToolRequest(FINAL_ANSWER, sample(final["parameters"])),))
    return Reply("\n\n".join([*map(describe_result, plan.results if steps else situation.done), *plan.not_done]))


def _not_understood(situation: Situation) -> str:
    if situation.reminder:
        return f"Reminder: {situation.said}"
    return UNASKED if situation.unasked else guide(situation)


def _pause(reply: Reply) -> float:
    """Return the seconds between two events of the stream."""
    written = len(reply.text) + sum(len(str(call.arguments)) for call in reply.calls)
    return min(PAUSE_SECONDS, ANSWER_SECONDS / (written / PIECE_CHARACTERS + 10))
