"""Approvals: outputs that a person was asked about. There is no second list of them (R25)."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from agents.engine import decisions
from conversations.api import shapes
from conversations.api.bodies import Answer, Approve, Decision, Decisions, Reject, read
from conversations.api.describe import APPROVALS, STATES, operation
from conversations.api.errors import Invalid, RequestRefused, refusal
from conversations.api.paging import number, paginate
from conversations.api.views import ApiView
from conversations.approvals.decisions import decide
from conversations.approvals.many import DecisionOutcome, WantedDecision, decide_many
from conversations.approvals.permissions import shown_to, told_to
from conversations.display.shapes.grants import Grant
from conversations.display.shapes.outputs import Approval
from conversations.models import GateState, Output, Scope
from conversations.models import Grant as GrantRow


class Approvals(ApiView):
    """The list of approvals."""

    @operation("List approvals", shapes.ApprovalPage, parameters=APPROVALS)
    def get(self, request: Request) -> Response:
        """List what people were asked about: in your own turns, or in all turns if you may decide for others.

        `state` defaults to `pending`; `prompt` limits the list to one turn. Pending approvals are listed oldest first,
        all others newest first.
        """
        state = request.query_params.get("state", GateState.PENDING)
        if state not in STATES:
            raise Invalid({"state": [f"Choose one of: {', '.join(STATES)}."]})
        found = _gates(request) if state == "all" else _gates(request).filter(gate=state)
        if "prompt" in request.query_params:
            found = found.filter(prompt=number(request, "prompt", 0))
        order = ("asked_at", "pk") if state == GateState.PENDING else ("-asked_at", "-pk")
        return paginate(request, found.order_by(*order), Approval.of, "data")


class OneApproval(ApiView):
    """One approval."""

    @operation("Get an approval", Approval)
    def get(self, request: Request, pk: int) -> Response:
        """Return one call that a person was asked about, in its current state."""
        return Response(Approval.of(_gates(request).get(pk=pk)))


class ApproveOne(ApiView):
    """Approving one call."""

    scopes = (Scope.DECIDE,)

    @operation("Approve a call", shapes.Approved, request=Approve)
    def post(self, request: Request, pk: int) -> Response:
        """Approve a call, as it was shown or with your own input. 409 with its current state if it changed.

        `remember` also gives a grant: calls like this one, in your own conversations, then run without asking you.
        """
        body, told = read(request, Approve), told_to(request.user).get(pk=pk)
        given = body.remember.remember() if body.remember else None
        said: dict[str, Any] = {"digest": body.digest or "", "reason": body.note, "input": body.input}
        output = decide(told.pk, request.user, decisions.Decision.APPROVE, via="api", remember=given, **said)
        given_with = GrantRow.objects.filter(user=request.user, prompt=output.prompt_id, path=output.path)
        grant = given_with.first() if body.remember else None
        return Response(shapes.Approved.read(Approval.of(output), grant=Grant.of(grant) if grant else None))


class RejectOne(ApiView):
    """Rejecting one call."""

    scopes = (Scope.DECIDE,)

    @operation("Reject a call", Approval, request=Reject)
    def post(self, request: Request, pk: int) -> Response:
        """Reject a call. It never runs; the agent is told the reason and goes on."""
        body = read(request, Reject)
        return _decide(request, pk, decisions.Decision.REJECT, body.digest, reason=body.reason)


class AnswerOne(ApiView):
    """Answering one question."""

    scopes = (Scope.DECIDE,)

    @operation("Answer a question", Approval, request=Answer)
    def post(self, request: Request, pk: int) -> Response:
        """Answer a policy's question (the tool `human`). 409 with its current state if somebody else did, 400 with
        the wrong `fields` if the answer does not fit.
        """
        body = read(request, Answer)
        return _decide(request, pk, decisions.Decision.ANSWER, body.digest, answer=body.answer)


class DecideTogether(ApiView):
    """Deciding several approvals."""

    scopes = (Scope.DECIDE,)

    @operation("Decide several", shapes.Verdicts, request=Decisions)
    def post(self, request: Request) -> Response:
        """Decide at most 20 approvals, each on its own. The answer is 200, with a verdict for each, in the same order.

        All that are approved must have the same risk; otherwise nothing is decided (400 `mixed_risk`).
        """
        wanted = read(request, Decisions).root
        shown = set(told_to(request.user).filter(pk__in=[each.id for each in wanted]).values_list("pk", flat=True))
        asked = [
            WantedDecision(each.id, each.decision, each.digest or "", each.reason, each.input, answer=each.answer)
            for each in wanted
            if each.id in shown
        ]
        outcomes = iter(decide_many(asked, request.user, "api"))
        verdicts = [_verdict(each, next(outcomes) if each.id in shown else None) for each in wanted]
        return Response(shapes.Verdicts(results=verdicts))


def _gates(request: Request) -> QuerySet[Output]:
    """Return the gates that this user may see."""
    return shown_to(request.user, Output.objects.gates()).select_related("conversation__owner")


def _decide(request: Request, pk: int, decision: str, digest: str | None, **more: Any) -> Response:
    """Decide, and return the approval. Raises what `decide` raises, and DoesNotExist if the user may not see it."""
    told_to(request.user).get(pk=pk)
    return Response(Approval.of(decide(pk, request.user, decision, digest=digest or "", via="api", **more)))


def _verdict(wanted: Decision, outcome: DecisionOutcome | None) -> shapes.Verdict:
    """Return one verdict: the current `approval`, or an `error`. None means that the user may see no such approval."""
    if outcome and outcome.output:
        return shapes.Verdict(id=wanted.id, status=200, approval=Approval.of(outcome.output))
    refused = refusal(outcome.refused) if outcome and outcome.refused else None
    refused = refused or RequestRefused(404, "not_found", "There is no such approval, or it is not yours to see.")
    return shapes.Verdict(id=wanted.id, status=refused.status_code, **refused.body)
