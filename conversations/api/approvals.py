"""Approvals: outputs that a person was asked about. There is no second list of them (R25)."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from agents.engine import decisions
from agents.engine.ledger import JSON
from conversations.api import shapes
from conversations.api.bodies import Answer, Approve, Decision, Decisions, Reject, read
from conversations.api.describe import APPROVALS, STATES, operation
from conversations.api.errors import Invalid, RequestRefused, refusal
from conversations.api.paging import paginate
from conversations.api.views import ApiView
from conversations.approvals.decisions import decide
from conversations.approvals.many import DecisionOutcome, WantedDecision, decide_many
from conversations.approvals.permissions import shown_to
from conversations.display.json import gate_json
from conversations.models import GateState, Output, Scope


class Approvals(ApiView):
    """The list of approvals."""

    @operation("List approvals", shapes.ApprovalPage, parameters=APPROVALS)
    def get(self, request: Request) -> Response:
        """List what people were asked about: in your own turns, or in all turns if you may decide for others.

        `state` defaults to `pending`. Pending approvals are listed oldest first, all others newest first.
        """
        state = request.query_params.get("state", GateState.PENDING)
        if state not in STATES:
            raise Invalid({"state": [f"Choose one of: {', '.join(STATES)}."]})
        found = _gates(request) if state == "all" else _gates(request).filter(gate=state)
        order = ("asked_at", "pk") if state == GateState.PENDING else ("-asked_at", "-pk")
        return paginate(request, found.order_by(*order), gate_json, "data")


class OneApproval(ApiView):
    """One approval."""

    @operation("Get an approval", shapes.Approval)
    def get(self, request: Request, pk: int) -> Response:
        """Return one call that a person was asked about, in its current state."""
        return Response(gate_json(_gates(request).get(pk=pk)))


class ApproveOne(ApiView):
    """Approving one call."""

    scope = Scope.DECIDE

    @operation("Approve a call", shapes.Approval, request=Approve)
    def post(self, request: Request, pk: int) -> Response:
        """Approve a call, as it was shown or with your own input. 409 with its current state if it changed."""
        body = read(request, Approve)
        return _decide(request, pk, decisions.Decision.APPROVE, digest=body.digest, reason=body.note, input=body.input)


class RejectOne(ApiView):
    """Rejecting one call."""

    scope = Scope.DECIDE

    @operation("Reject a call", shapes.Approval, request=Reject)
    def post(self, request: Request, pk: int) -> Response:
        """Reject a call. It never runs; the agent is told the reason and goes on."""
        body = read(request, Reject)
        return _decide(request, pk, decisions.Decision.REJECT, digest=body.digest, reason=body.reason)


class AnswerOne(ApiView):
    """Answering one question."""

    scope = Scope.DECIDE

    @operation("Answer a question", shapes.Approval, request=Answer)
    def post(self, request: Request, pk: int) -> Response:
        """Answer a policy's question (the tool `human`). 409 with its current state if somebody else did, 400 with
        the wrong `fields` if the answer does not fit.
        """
        body = read(request, Answer)
        return _decide(request, pk, decisions.Decision.ANSWER, digest=body.digest, answer=body.answer)


class DecideTogether(ApiView):
    """Deciding several approvals."""

    scope = Scope.DECIDE

    @operation("Decide several", shapes.Verdicts, request=Decisions)
    def post(self, request: Request) -> Response:
        """Decide at most 20 approvals, each on its own. The answer is 200, with a verdict for each, in the same order.

        All that are approved must have the same risk; otherwise nothing is decided (400 `mixed_risk`).
        """
        wanted = read(request, Decisions).root
        shown = set(_gates(request).filter(pk__in=[each.id for each in wanted]).values_list("pk", flat=True))
        asked = [
            WantedDecision(d.id, d.decision, d.digest, d.reason, d.input, d.answer) for d in wanted if d.id in shown
        ]
        verdicts = iter(decide_many(asked, request.user, "api"))
        return Response({"results": [_verdict_json(d, next(verdicts) if d.id in shown else None) for d in wanted]})


def _gates(request: Request) -> QuerySet[Output]:
    """Return the gates that this user may see."""
    return shown_to(request.user, Output.objects.gates()).select_related("conversation__owner")


def _decide(request: Request, pk: int, decision: str, **how: Any) -> Response:
    """Decide, and return the approval. Raises what `decide` raises, and DoesNotExist if the user may not see it."""
    _gates(request).get(pk=pk)
    return Response(gate_json(decide(pk, request.user, decision, via="api", **how)))


def _verdict_json(wanted: Decision, verdict: DecisionOutcome | None) -> dict[str, JSON]:
    """Return one verdict: the current `approval`, or an `error`. None means that the user may see no such approval."""
    if verdict and verdict.output:
        return {"id": wanted.id, "status": 200, "approval": gate_json(verdict.output)}
    refused = refusal(verdict.refused) if verdict and verdict.refused else None
    refused = refused or RequestRefused(404, "not_found", "There is no such approval, or it is not yours to see.")
    return {"id": wanted.id, "status": refused.status_code, **refused.body}
