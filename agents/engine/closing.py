"""Closing a turn that does not end by itself: every open call gets its result, inner calls first."""

from __future__ import annotations

from collections.abc import Iterable

from agents.engine import paths
from agents.engine.actors import Actor, Kind
from agents.engine.decisions import Decision
from agents.engine.ledger import JSON, Step, action_error, text
from agents.engine.view import View, opens_gate

USAGE = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
"""The token counts of one answer. `cached_tokens` are part of the input, `reasoning_tokens` part of the output."""

HAD_BEGUN = "It had begun: some or all of it may have happened, check before you repeat it."
"""Added to the error of a call that was cut off, so that nobody mistakes it for one that never ran."""


def close_turn(view: View, state: str, stop_reason: str, message: str) -> list[Step]:
    """Return the steps that end the turn as `state`: a result for each open gate and call, the root last.

    `message` is shown to people, and to the model as the error of each unfinished call.
    """
    closing = close_calls(view, "cancelled" if state == "cancelled" else stop_reason, message)
    if state == "failed":
        closing.append(notice(message))
    return [*closing, turn_result(view, state, stop_reason)]


NOT_EXECUTED = ("not_executed", "The turn ended before this ran.")
"""The code and the message for a call that an answer asked for, and that nobody ran."""


def close_calls(view: View, code: str, message: str) -> list[Step]:
    """Return a result for each open gate and each open call but the root, inner ones first."""
    steps: list[Step] = []
    for call in view.open_calls():
        if not call.path:
            continue
        if opens_gate(call):
            steps.append(cancelled_gate(call.path))
        else:
            began = call.payload["policy"] != "model" and view.at(call.path, "action_start")
            why = f"{message} {HAD_BEGUN}" if began else message
            steps.append(action_error("runtime", code, why, path=call.path))
    return steps


def given_back(view: View, steps: Iterable[Step]) -> tuple[str, ...]:
    """Return the grants that decided calls which, by these steps, end without having begun, once for each call.

    A call that only reads records no start: whether it began is not known, so its use stays used.
    """
    found = list[str]()
    for step in steps:
        gate, decided = view.call(paths.gate(step.path)), view.result(paths.gate(step.path))
        if step.type != "action_result" or not step.failed or not gate or not decided:
            continue
        starts = gate.payload["payload"].get("risk") != "read"
        if starts and Actor.parse(decided.actor).kind == Kind.GRANT and not view.at(step.path, "action_start"):
            found.append(decided.actor)
    return tuple(found)


def cancelled_gate(path: str) -> Step:
    """Return the decision that closes the gate at this path, because its call will not run."""
    return Step("system", "action_result", {"decision": Decision.CANCELLED.value, "via": "system"}, path=path)


def notice(message: str) -> Step:
    """Return a text of the system about the turn, which people are shown at its end."""
    return text("system", message, role_hint="system")


def turn_result(view: View, state: str, stop_reason: str) -> Step:
    """Return the result of the root call, which ends the turn."""
    said = {"state": state, "stop_reason": stop_reason, "usage": turn_usage(view.steps)}
    return Step("runtime", "action_result", said, path="")


NOT_PERMITTED = "not_permitted"
"""The code of the error, and the stop reason, of a program whose starter may not run it any more."""

ENDS = ("completed", "failed", "cancelled")
"""The states of a turn that has ended."""


def is_turn_result(result: Step) -> bool:
    """Whether this is what `turn_result` returns, and not the result of a program that is no agent."""
    said = result.payload
    return result.actor == "runtime" and said.get("state") in ENDS and isinstance(said.get("stop_reason"), str)


def turn_end(result: Step) -> tuple[str, str]:
    """Return the state and the stop reason with which the result of the root call ends its turn.

    That of a program that is no agent says neither: the turn is completed, or failed if the result is an error.
    """
    said = result.payload
    if is_turn_result(result):
        return said["state"], said["stop_reason"]
    if result.failed:
        return "failed", NOT_PERMITTED if said.get("code") == NOT_PERMITTED else "error"
    return "completed", "done"


def turn_usage(steps: Iterable[Step]) -> dict[str, JSON]:
    """Add up the tokens and cost of all answers among the steps of a turn, and list the models that gave them (S39).

    `cost_nano_usd` is None if the price of any answer is unknown.
    """
    answers = [(used, step) for step in steps if (used := answer_usage(step)) is not None]
    totals: dict[str, JSON] = {name: sum(used[name] for used, _ in answers) for name in USAGE}
    prices = [answer_price(answer) for _, answer in answers]
    models = {str(answer.payload["model"]) for _, answer in answers}
    return totals | {"cost_nano_usd": None if None in prices else sum(filter(None, prices)), "models": sorted(models)}


def answer_price(answer: Step) -> int | None:
    """Return what a model's answer cost, in billionths of a US dollar; None if that is unknown."""
    price = answer.payload.get("cost_nano_usd")
    return price if isinstance(price, int) else None


def tokens_of(step: Step) -> int:
    """Return the tokens of a model's answer, as quotas count them; 0 if the step is not an answer."""
    used = answer_usage(step)
    return used["input_tokens"] + used["output_tokens"] if used else 0


def answer_usage(step: Step) -> dict[str, int] | None:
    """Return the token counts of a model's answer, by the names in USAGE; None if the step is not an answer."""
    used = step.payload.get("usage") if step.type == "action_result" and step.path and step.actor == "model" else None
    if not isinstance(used, dict) or "model" not in step.payload:
        return None
    return {name: count if isinstance(count := used.get(name), int) else 0 for name in USAGE}
