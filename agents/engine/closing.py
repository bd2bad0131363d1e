"""Closing a turn that does not end by itself: every open call gets its result, inner calls first."""

from __future__ import annotations

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
    code = "cancelled" if state == "cancelled" else stop_reason
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
    if state == "failed":
        steps.append(notice(message))
    return [*steps, turn_result(view, state, stop_reason)]


def cancelled_gate(path: str) -> Step:
    """Return the decision that closes the gate at this path, because its call will not run."""
    return Step("system", "action_result", {"decision": Decision.CANCELLED.value, "via": "system"}, path=path)


def notice(message: str) -> Step:
    """Return a text of the system about the turn, which people are shown at its end."""
    return text("system", message, role_hint="system")


def turn_result(view: View, state: str, stop_reason: str) -> Step:
    """Return the result of the root call, which ends the turn."""
    return Step(
        "runtime", "action_result", {"state": state, "stop_reason": stop_reason, "usage": turn_usage(view)}, path=""
    )


def turn_usage(view: View) -> dict[str, JSON]:
    """Add up the tokens and cost of all answers in the turn, and list the models that gave them (S39).

    `cost_nano_usd` is None if the price of any answer is unknown.
    """
    answers = [step.payload for step in view.steps if answer_usage(step) is not None]
    totals: dict[str, JSON] = {name: sum(answer["usage"].get(name, 0) for answer in answers) for name in USAGE}
    prices: list[JSON] = [answer.get("cost_nano_usd") for answer in answers]
    models = {str(answer["model"]) for answer in answers}
    return totals | {"cost_nano_usd": None if None in prices else sum(prices), "models": sorted(models)}


def answer_usage(step: Step) -> dict[str, int] | None:
    """Return the token counts of a model's answer; None if the step is not an answer."""
    used = step.payload.get("usage") if step.type == "action_result" and step.path else None
    return used if isinstance(used, dict) and "model" in step.payload else None
