"""Deciding a gate: one function for the admin, the chat and the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models.functions import Now

from agents.engine import actors
from agents.engine.decisions import RUNS, Decision, answers_to
from agents.engine.errors import ToolError
from agents.engine.ledger import JSON, Step
from agents.engine.outputs.kinds import Approval, ToolOutput
from agents.engine.secrets import hide, hide_in
from conversations.approvals.edits import WHOLE, Edit, as_json_object, edit_check, same_json
from conversations.approvals.permissions import may_allow, may_decide
from conversations.database.crashpoints import crashpoint
from conversations.ledger import wakeup
from conversations.ledger.locked import LockedTurn, locked_turn
from conversations.models import GateState, Output, State

if TYPE_CHECKING:
    from django.contrib.auth.models import User

CHANGED = "This is not what you were shown: look at it again."
FOUR_EYES = "Somebody else must decide this: you asked for it. You may reject it, or stop the turn."


class DecisionRefused(Exception):
    """A decision that changes nothing. `code` is for programs; the message says what to do; `details` say where.

    The details of `invalid_input` are what is wrong, by field.
    """

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.details = code, dict(details or {})


class Conflict(DecisionRefused):
    """The gate is not as it was shown: decided by another, closed, or asked anew. `output` is its present state.

    The details of `facts_changed`, which is said of an edited call, are its `facts`, its `change` where it has one that
    is shown, and its `digest`.
    """

    def __init__(self, code: str, message: str, output: Output, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(code, message, details)
        self.output = output


def decide(
    output_id: int,
    by: User,
    decision: str,
    *,
    digest: str,
    via: str,
    reason: str = "",
    input: object = None,
    answer: str | None = None,
) -> Output:
    """Decide the gate of this output as `decision`; the turn goes on when no gate of it is left.

    `digest` is that of the call as it was shown: another one is refused, nothing is decided. `via`: page, admin or api.
    `reason`: why; with an approval it is a note. `input`: approve the call with this input in the place of the agent's;
    where other facts then hold of it, or where it changes another text, that has to be seen first: `facts_changed`
    tells it with the digest to decide by. `answer` is what a question is answered with.

    The same decision again by the same person returns the first result. Raises ObjectDoesNotExist (nobody was
    asked, or the conversation was erased), Conflict, DecisionRefused (`forbidden`, `four_eyes`, `unknown_decision`,
    `invalid_input`, `not_editable`, `invalid_answer`).
    """
    input, reason, answer = _without_secrets(input), hide(reason).strip(), answer and hide(answer)
    prompt_id = Output.objects.gates().values_list("prompt_id", flat=True).get(pk=output_id)
    with locked_turn(prompt_id) as turn:
        output = Output.objects.select_related("conversation", "prompt").get(pk=output_id)
        by = _reloaded(by)
        if not may_decide(by, output):
            raise DecisionRefused("forbidden", "You may not decide this: ask somebody with the permission.")
        if output.gate != GateState.PENDING:
            wanted = {"decision": decision, "input": input, "answer": answer}
            return _decided_already(output, turn, actors.user(by.pk), wanted)
        if turn.view.cancelled() or turn.prompt.ended:
            raise Conflict("cancelled", "Nothing was changed: the turn was stopped.", output)
        if overdue := _is_overdue(output):
            expire(turn, output)  # no sweep came by since: it is not to be approved for that
        else:
            _check_allowed(output, by, decision, digest)
            said = _binding(output, decision, digest, input, answer) | {"decision": decision, "via": via}
            more = {"reason": reason} if reason else {}
            record_decision(turn, Step(actors.user(by.pk), "action_result", said | more, path=output.gate_path))
    output.refresh_from_db()
    if overdue:
        raise Conflict("expired", "Nothing was changed: nobody had answered in time, so it has expired.", output)
    return output


def _check_allowed(output: Output, by: User, decision: str, digest: str) -> None:
    """Raise where this is no decision of what is asked, or not this person's."""
    if decision not in (answers := answers_to(output.ask)):
        if digest != output.digest:  # something else was asked when they looked
            raise Conflict("changed", CHANGED, output)
        there_are = ", ".join(answers) or "none"
        raise DecisionRefused("unknown_decision", f"{decision!r} is no answer to this. There are: {there_are}.")
    if decision in RUNS and not may_allow(by, output):
        raise DecisionRefused("four_eyes", FOUR_EYES)


def _is_overdue(output: Output) -> bool:
    """Whether its time has passed, by the database's clock."""
    return Output.objects.filter(pk=output.pk, expires_at__lte=Now()).exists()


def expire(turn: LockedTurn, output: Output) -> None:
    """Record that nobody decided this gate in time."""
    expired = {"decision": Decision.EXPIRED.value, "digest": output.digest, "via": "system"}
    record_decision(turn, Step("system", "action_result", expired, path=output.gate_path))


def _without_secrets(input: object) -> object:
    """An input as it is kept: without the site's secrets."""
    try:
        return hide_in(input)
    except RecursionError as error:
        why = "an input is not nested that deeply"
        raise DecisionRefused("invalid_input", f"Nothing was decided: {why}.", {WHOLE: [why]}) from error


def record_decision(turn: LockedTurn, decision: Step) -> None:
    """Record a decision; where it was the last that the turn waits for, the turn goes on."""
    turn.append([decision])
    if turn.prompt.state == State.WAITING and not turn.view.open_gates():
        turn.append([_resume(turn)])
    crashpoint("before_decision")
    transaction.on_commit(wakeup.wake)


def _reloaded(user: User) -> User:
    """The person as the database has them: a session or a socket may know them from before they were deactivated."""
    return get_user_model().objects.get(pk=user.pk)


def _binding(output: Output, decision: str, digest: str, input: object, answer: str | None) -> dict[str, JSON]:
    """What the decision binds, as it is recorded. Raises as `decide` does."""
    if input is not None and (edit := _edit(output, decision, input)):
        _check_shown(output, digest, edit)
        return {"digest": edit.digest, "input": edit.input, "facts": edit.facts, **_recorded_change(output, edit)}
    if digest != output.digest:
        raise Conflict("changed", CHANGED, output)
    if decision != Decision.ANSWER:
        return {"digest": output.digest}
    if not (answer or "").strip():
        raise DecisionRefused("invalid_answer", "An answer says something.")
    return {"digest": output.digest, "answer": answer}


def _edit(output: Output, decision: str, input: object) -> Edit | None:
    """The edited call, checked; None where the input is the agent's own."""
    try:
        payload = as_json_object(input)
    except TypeError as error:
        raise DecisionRefused("invalid_input", f"Nothing was decided: {error}.", {WHOLE: [str(error)]}) from error
    if same_json(payload, _input(output)):
        return None
    check = edit_check(output) if decision == Decision.APPROVE else None
    if check is None:
        raise DecisionRefused("not_editable", "Nothing was decided: this cannot be edited. Decide it as it was asked.")
    if wrong := check.problems(payload):
        told = "; ".join(f"{place}: {', '.join(why)}" for place, why in wrong.items())
        raise DecisionRefused("invalid_input", f"Nothing was decided: the input is not valid. {told}", wrong)
    try:
        return check.edit(payload)
    except ToolError as error:
        why = hide(error.message)
        raise DecisionRefused("invalid_input", f"Nothing was decided: {why}", {WHOLE: [why]}) from error


def _recorded_change(output: Output, edit: Edit) -> dict[str, JSON]:
    """The edited call's change, where it has one, or the call had that was asked about."""
    return {"change": edit.change} if edit.change or _approval(output).change else {}


def _check_shown(output: Output, digest: str, edit: Edit) -> None:
    """Raises Conflict, unless all that holds of the edited call was seen: before the edit, or with it."""
    if digest == edit.digest:
        return
    if digest != output.digest:
        raise Conflict("changed", CHANGED, output)
    asked = _approval(output)
    if not edit.same_basis(asked.facts, asked.change.model_dump() if asked.change else None):
        details = {"facts": edit.facts, "digest": edit.digest, **({"change": edit.change} if edit.change else {})}
        raise Conflict("facts_changed", "Not decided yet: with this input, something else holds.", output, details)


def _input(output: Output) -> dict[str, JSON]:
    entry = output.entry()
    return entry.input if isinstance(entry, ToolOutput) else {}


def _approval(output: Output) -> Approval:
    entry = output.entry()
    return entry.approval if isinstance(entry, ToolOutput) and entry.approval else Approval(path=output.gate_path)


def _decided_already(output: Output, turn: LockedTurn, actor: str, wanted: dict[str, Any]) -> Output:
    """The same decision again, in every word of it, returns the first result."""
    result, asked = turn.view.result(output.gate_path), turn.view.call(output.gate_path)
    if result and asked and result.actor == actor:
        own = asked.payload.get("payload", {}).get("input")
        given = wanted | {"input": own if wanted["input"] is None else wanted["input"]}
        taken = {name: result.payload.get(name) for name in ("decision", "answer")}
        if same_json(given, taken | {"input": result.payload.get("input", own)}):
            return output
    raise Conflict(output.gate, f"Nothing was changed: it is {output.get_gate_display().lower()} already.", output)


def _resume(turn: LockedTurn) -> Step:
    pauses = turn.view.at("", "pause")
    left: Any = pauses[-1].payload.get("steps_remaining", 0) if pauses else 0
    return Step("runtime", "resume", {"resumed_reason": "all_actions_resolved", "steps_remaining": left})
