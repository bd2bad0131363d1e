"""Decisions on gates: one function for the pages, the admin and the API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from agents.engine import actors
from agents.engine.complaints import sentence
from agents.engine.deciding import resume_step
from agents.engine.decisions import FOUR_EYES, RUNS, Ask, Decision, answers_to
from agents.engine.errors import ToolError
from agents.engine.execution.gates import ANOTHER, ask_about_edit
from agents.engine.grants.grant import Asked, callers
from agents.engine.ledger import JSON, Step
from agents.engine.outputs.kinds import Approval, ToolOutput
from agents.engine.secrets import hide, hide_in
from conversations.accounts.names import deciders
from conversations.approvals.answers import BadAnswer, Question, checked_answer
from conversations.approvals.edits import AS_IT_IS, TOO_DEEP, WHOLE, Edit, as_json_object, edit_check, same_json
from conversations.approvals.grants import BadGrant, Remember, give
from conversations.approvals.permissions import may_allow, may_be_told, may_decide, needs_password, requesters
from conversations.database.crashpoints import crashpoint
from conversations.database.sql import database_time
from conversations.ledger import wakeup
from conversations.ledger.locked import LockedTurn, locked_turn
from conversations.ledger.secrets import secrets_of
from conversations.models import GateState, Output, Prompt, State

if TYPE_CHECKING:
    from django.contrib.auth.models import User

CHANGED = "This is not what you were shown. Please review it again."
NOT_PENDING = "Nothing was changed, because nobody was asked to decide this."
NOT_BY_YOU = "Someone else must decide this, because you asked for it. You can reject it, or stop the turn."
NOT_ANSWERED_BY_YOU = "Someone else must answer this, because you asked for it. You can stop the turn."
EDITED_BY_YOU = "Someone else must approve this, because you edited it. You can reject it."
UNVERIFIED = "Nothing was decided: approving a call of this risk needs your password. Decide it on a page of the site."
NOBODY_ELSE = (
    "Nothing was decided: nobody else could approve the call as you edited it. Reject it, and say what to change."
)


class DecisionRefused(Exception):
    """A decision that was refused and changed nothing. `code` is for programs; the message says what to do.

    The `details` of `invalid_input` and `invalid_answer` are the problems, by field.
    """

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.details = code, dict(details or {})


class Conflict(DecisionRefused):
    """The gate is no longer as it was shown: it was decided, closed or asked again. `output` is its current state.

    With the code `not_pending`, the output has no gate: nobody was ever asked, and only its owner is told so. The code
    `facts_changed` concerns an edited call. Its details are the `facts` of that call, its `change` if it has one that
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
    seen: str = "",
    answer: object = None,
    remember: Remember | None = None,
    verified: bool = False,
) -> Output:
    """Decide the gate of this output. The turn resumes when none of its gates is left open.

    `digest` is that of the call as it was shown; a decision with any other digest is refused. `via` is page, inbox,
    admin or api. `reason` says why; with an approval, it is a note. `input` approves the call with this input instead
    of the agent's. If different facts then hold of the call, or it changes another text, the person has to see that
    first: Conflict `facts_changed` has the details, and the digest to decide with; `seen` is that digest, if they were
    shown and the input may have changed once more since. Where four eyes are needed, the call waits again after that,
    for somebody else to approve it as edited. `answer` answers a policy's question: JSON that fits what was asked.
    `remember`, with an approval of one's own call: a grant is stored in the same transaction, for calls like it.
    `verified`: the person has entered their password lately, without which no call of some risks is let run.

    The same decision, repeated by the same person, returns the first result; one that gave no grant does not give one
    later. Raises ObjectDoesNotExist (there is no such output, its conversation was erased, or nobody was asked about it
    and it is somebody else's), Conflict, DecisionRefused (`forbidden`, `four_eyes`, `unknown_decision`,
    `invalid_input`, `not_editable`, `invalid_answer`, `invalid_grant`, `reauthenticate`).
    """
    prompt = Prompt.objects.get(outputs=output_id)
    with secrets_of(prompt).hidden():
        answer = _without_secrets(answer, "invalid_answer", "")
        said = Said(_input_told(input), answer, hide(reason).strip(), seen, remember)
        return _decide(prompt.pk, output_id, by, decision, said, digest=digest, via=via, verified=verified)


@dataclass(frozen=True)
class Said:
    """What a person says with a decision, without secrets. `seen`, `remember`: see `decide`."""

    input: object
    answer: object
    reason: str
    seen: str = ""
    remember: Remember | None = None


def _decide(
    prompt_id: int, output_id: int, by: User, decision: str, said: Said, *, digest: str, via: str, verified: bool
) -> Output:
    input, answer, reason = said.input, said.answer, said.reason
    with locked_turn(prompt_id) as turn:
        output = Output.objects.get(pk=output_id)
        output.prompt, output.conversation = turn.prompt, turn.prompt.conversation
        by = get_user_model().objects.get(pk=by.pk)  # they may have been deactivated since they were loaded
        if not may_be_told(by, output):
            raise Output.DoesNotExist
        if not may_decide(by, output):
            raise DecisionRefused("forbidden", "You may not decide this. Ask somebody who has the permission.")
        if not output.gate:
            raise Conflict("not_pending", NOT_PENDING, output)
        wanted = {"decision": decision, "input": input, "answer": answer, "remember": said.remember is not None}
        if _edited_already(output, actors.user(by.pk), wanted):
            return output
        if output.gate != GateState.PENDING:
            return _decided_already(output, turn, actors.user(by.pk), wanted)
        if turn.view.cancelled() or turn.prompt.ended:
            raise Conflict("cancelled", "Nothing was changed, because the turn was stopped.", output)
        if overdue := _is_overdue(output):
            expire(turn, output)  # no sweep has expired it yet, but it must not be approved any more
        else:
            _check_allowed(output, by, decision, digest)
            binding = _binding(output, decision, digest, said) | {"decision": decision, "via": via}
            _check_verified(output, decision, verified)
            more: dict[str, JSON] = {"reason": reason} if reason else {}
            if said.remember:
                more["remember"] = _granted(turn, output, by, said.remember, binding)
            decided = Step(actors.user(by.pk), "action_result", binding | more, path=output.gate_path)
            record_decision(turn, *_steps(turn, output, by, decided))
    output.refresh_from_db()
    if overdue:
        raise Conflict("expired", "Nothing was changed, because this has expired: nobody decided it in time.", output)
    return output


def _check_allowed(output: Output, by: User, decision: str, digest: str) -> None:
    """Raise unless this decision answers what is asked, and this person may make it."""
    if decision not in (answers := answers_to(output.ask)):
        if digest != output.digest:  # something else was asked when they looked
            raise Conflict("changed", CHANGED, output)
        allowed = ", ".join(answers) or "none"
        raise DecisionRefused(
            "unknown_decision", f"{decision!r} is not a decision here. Possible decisions: {allowed}."
        )
    if decision in FOUR_EYES and not may_allow(by, output):
        if output.ask == Ask.QUESTION:
            raise DecisionRefused("four_eyes", NOT_ANSWERED_BY_YOU)
        raise DecisionRefused("four_eyes", EDITED_BY_YOU if output.edited_by == actors.user(by.pk) else NOT_BY_YOU)


def _granted(turn: LockedTurn, output: Output, by: User, wanted: Remember, binding: dict[str, JSON]) -> JSON:
    """Store the grant of calls like the one that is approved by this decision; return what the record says of it."""
    gate = turn.view.call(output.gate_path)
    if binding["decision"] != Decision.APPROVE or gate is None:
        raise DecisionRefused("invalid_grant", "Only an approval can be remembered.")
    question, now = gate.payload["payload"] | binding, timezone.now()
    asked = Asked(question, callers(turn.view, output.path), False, now, output.conversation_id)
    try:
        grant = give(wanted.grant(asked), by, output)
    except BadGrant as bad:
        listed = " ".join(f"{place}: {' '.join(why)}" for place, why in bad.problems.items())
        problems = {f"remember.{place}": why for place, why in bad.problems.items()}
        raise DecisionRefused("invalid_grant", f"Nothing was decided. {bad}{listed}", problems) from bad
    return {"grant": grant.pk, **grant.said.recorded()}


def _check_verified(output: Output, decision: str, verified: bool) -> None:
    """Raise if this lets a call run that needs a password, and it was not entered lately.

    This is looked at last: whoever enters it then knows of the call as it is now.
    """
    if decision in RUNS and not verified and needs_password(output):
        raise DecisionRefused("reauthenticate", UNVERIFIED)


def _is_overdue(output: Output) -> bool:
    """Whether it has expired, by the database's clock."""
    return output.expires_at is not None and Output.objects.filter(pk=output.pk, expires_at__lte=Now()).exists()


def expire(turn: LockedTurn, output: Output) -> None:
    """Record that nobody decided this gate in time."""
    expired = {"decision": Decision.EXPIRED.value, "digest": output.digest, "via": "system"}
    record_decision(turn, Step("system", "action_result", expired, path=output.gate_path))


def _without_secrets(said: object, code: str, whole: str) -> object:
    """Return an input or an answer as it is recorded, without secrets."""
    try:
        return hide_in(said, keys=True)
    except RecursionError as error:
        raise DecisionRefused(code, f"Nothing was decided: {TOO_DEEP}.", {whole: [sentence(TOO_DEEP)]}) from error


def _input_told(input: object) -> object:
    """Return an input without secrets. Its own keys are the names of parameters: others are refused anyway."""
    if not isinstance(input, dict):
        return _without_secrets(input, "invalid_input", WHOLE)
    return {hide_in(key): _without_secrets(value, "invalid_input", WHOLE) for key, value in input.items()}


def _steps(turn: LockedTurn, output: Output, by: User, decided: Step) -> list[Step]:
    """Return what is recorded of a decision. An edit where four eyes are needed asks somebody else, for as long again.

    Raises DecisionRefused if there is nobody else who could approve the edited call.
    """
    gate = turn.view.call(output.gate_path)
    if gate is None or output.who != ANOTHER or "input" not in decided.payload:
        return [decided]
    people = requesters(output.conversation.owner_id, output.prompt.asked_by_id) | {by.pk}
    if not deciders(output.conversation.owner, people).exists():
        raise DecisionRefused("not_editable", NOBODY_ELSE)
    expires_at = gate.payload["payload"].get("expires_at", "")
    if output.expires_at and output.asked_at:
        now = datetime.fromtimestamp(database_time(), UTC)
        expires_at = (now + (output.expires_at - output.asked_at)).isoformat()
    return ask_about_edit(turn.view, gate, decided, expires_at)


def record_decision(turn: LockedTurn, *steps: Step) -> None:
    """Record a decision. If it is the last one that the turn waits for, the turn resumes."""
    turn.append(_resumed(turn, steps))
    crashpoint("before_decision")
    transaction.on_commit(wakeup.wake)


def _resumed(turn: LockedTurn, steps: Iterable[Step]) -> Iterator[Step]:
    """Yield these steps, and then that the turn resumes if they leave no gate open."""
    yield from steps
    if turn.prompt.state == State.WAITING and not turn.view.open_gates():
        yield resume_step(turn.view)


def _binding(output: Output, decision: str, digest: str, said: Said) -> dict[str, JSON]:
    """Return what the decision is binding for, as it is recorded. Raises as `decide` does."""
    if said.input is not None and (edit := _edit(output, decision, said.input)):
        _check_shown(output, digest, edit, said.seen)
        return {"digest": edit.digest, "input": edit.input, "facts": edit.facts, **_recorded_change(output, edit)}
    if digest != output.digest:
        raise Conflict("changed", CHANGED, output)
    if decision != Decision.ANSWER:
        return {"digest": output.digest}
    entry = output.entry()
    question = (Question.of(entry) if isinstance(entry, ToolOutput) else None) or Question()
    try:
        return {"digest": output.digest, "answer": checked_answer(question, said.answer)}
    except BadAnswer as bad:
        raise DecisionRefused("invalid_answer", f"Nothing was decided. {bad}", bad.problems) from bad


def _edit(output: Output, decision: str, input: object) -> Edit | None:
    """Return the edited call, checked; None if the input is the agent's own."""
    try:
        payload = as_json_object(input)
    except TypeError as error:
        raise DecisionRefused(
            "invalid_input", f"Nothing was decided: {error}.", {WHOLE: [sentence(str(error))]}
        ) from error
    if same_json(payload, _input(output)):
        return None
    check = edit_check(output) if decision == Decision.APPROVE else None
    if check is None:
        raise DecisionRefused("not_editable", f"Nothing was decided. {AS_IT_IS}")
    if wrong := check.problems(payload):
        listed = " ".join(f"{place}: {' '.join(why)}" for place, why in wrong.items())
        raise DecisionRefused("invalid_input", f"Nothing was decided: the input is not valid. {listed}", wrong)
    try:
        return check.edit(payload)
    except ToolError as error:
        why = hide(error.message)
        raise DecisionRefused("invalid_input", f"Nothing was decided: {why}", {WHOLE: [why]}) from error


def _recorded_change(output: Output, edit: Edit) -> dict[str, JSON]:
    """Return the edited call's change for the record, if it or the original call has one."""
    return {"change": edit.change} if edit.change or _approval(output).change else {}


def _check_shown(output: Output, digest: str, edit: Edit, seen: str) -> None:
    """Raise Conflict unless the person saw everything about the edited call, before the edit or with it."""
    if digest == edit.digest:
        return
    if digest != output.digest:
        raise Conflict("changed", CHANGED, output)
    if edit.digest == seen:
        return
    asked = _approval(output)
    if not edit.same_basis(asked.facts, asked.change.model_dump() if asked.change else None):
        details = {"facts": edit.facts, "digest": edit.digest, **({"change": edit.change} if edit.change else {})}
        raise Conflict(
            "facts_changed",
            "Not decided yet: with this input, the facts shown have changed. Please review them.",
            output,
            details,
        )


def _input(output: Output) -> dict[str, JSON]:
    entry = output.entry()
    return entry.input if isinstance(entry, ToolOutput) else {}


def _approval(output: Output) -> Approval:
    entry = output.entry()
    return entry.approval if isinstance(entry, ToolOutput) and entry.approval else Approval(path=output.gate_path)


def _edited_already(output: Output, actor: str, wanted: dict[str, Any]) -> bool:
    """Whether this is the edit about which somebody else is asked now, made once more."""
    again = output.edited_by == actor and wanted["decision"] == Decision.APPROVE
    return again and output.gate == GateState.PENDING and same_json(wanted["input"], _input(output))


def _decided_already(output: Output, turn: LockedTurn, actor: str, wanted: dict[str, Any]) -> Output:
    """Return the first result if this is exactly the same decision again. Raises Conflict otherwise."""
    result, asked = turn.view.result(output.gate_path), turn.view.call(output.gate_path)
    if result and asked and result.actor == actor:
        own = asked.payload.get("payload", {}).get("input")
        given = wanted | {"input": own if wanted["input"] is None else wanted["input"]}
        taken = {name: result.payload.get(name) for name in ("decision", "answer")}
        taken["remember"] = wanted["remember"] and "remember" in result.payload
        if same_json(given, taken | {"input": result.payload.get("input", own)}):
            return output
    raise Conflict(output.gate, f"Nothing was changed: this is already {output.get_gate_display().lower()}.", output)
