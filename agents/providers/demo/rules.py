"""What the demo model answers: rules that drive every tool from plain requests. No language model, and it says so.

The request alone decides: what the person said is understood, the results so far are counted off against it, and what
is left is asked for. `sentences` holds what people say for each tool.
"""

from __future__ import annotations

from dataclasses import replace

from agents.engine.ledger import JSON
from agents.providers.demo import json_text
from agents.providers.demo.guide import INTRODUCTION, guide
from agents.providers.demo.planning import Unclear, next_of
from agents.providers.demo.script import Reply
from agents.providers.demo.situation import Situation
from agents.providers.demo.telling import told
from agents.providers.demo.understanding import understand
from agents.providers.demo.wire import PIECE_CHARACTERS

PAUSE_SECONDS = 0.015
"""Between two pieces of an answer, so that one sees it come."""
ANSWER_SECONDS = 1.2
"""How long all pauses of one answer may take."""


def answer(body: dict[str, JSON]) -> Reply:
    """Do what is asked for; tell what came of it; or say what could be asked for. A script for the wire server."""
    asked = json_text.with_tools(body)
    situation = Situation.of(asked or body)
    reply = _reply(situation, calls=1 if asked else None)
    if situation.first and not reply.text.startswith(INTRODUCTION):
        reply = replace(reply, text=f"{INTRODUCTION} {reply.text}")
    if asked:
        reply = json_text.written(reply)
    return replace(reply, pause_seconds=_pause(reply))


def _reply(situation: Situation, calls: int | None) -> Reply:
    """`calls`: how many the protocol allows in one answer, if it limits them."""
    steps = understand(situation.said)
    if not steps and not situation.done:
        return Reply(guide(situation))
    try:
        left = next_of(steps, situation)
    except Unclear as unclear:
        return Reply(str(unclear))
    if left.calls:
        said = f"{'Next I' if situation.done else 'I'} {_listed(left.doing[:calls])}."
        return Reply(said, left.calls[:calls])
    return Reply("\n\n".join([*map(told, left.results if steps else situation.done), *left.not_done]))


def _listed(doing: tuple[str, ...]) -> str:
    *others, last = doing
    return f"will {', '.join(others)} and {last}" if others else f"will {last}"


def _pause(reply: Reply) -> float:
    """Seconds between the events of a stream."""
    written = len(reply.text) + sum(len(str(call.arguments)) for call in reply.calls)
    return min(PAUSE_SECONDS, ANSWER_SECONDS / (written / PIECE_CHARACTERS + 10))
