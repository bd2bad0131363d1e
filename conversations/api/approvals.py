"""Approvals: outputs that a person was asked about. There is no second list of them (R25)."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from agents.engine import decisions
from agents.engine.ledger import JSON
from conversations.api import shapes
from conversations.api.bodies import Approve, Decision, Decisions, Reject, read
from conversations.api.describe import APPROVALS, described
from conversations.api.errors import Invalid, RequestRefused, error_json, refusal
from conversations.api.paging import page_of
from conversations.api.views import ApiView
from conversations.approvals.many import DecisionOutcome, WantedDecision, decide_many
from conversations.approvals.permissions import shown_to
from conversations.display.json import gate_json
from conversations.models import GateState, Output, Scope

ALL = "all"


class Approvals(ApiView):
    """The list."""

    @described("List approvals", shapes.ApprovalPage, parameters=APPROVALS)
    def get(self, request: Request) -> Response:
        """What people were asked: your own turns' approvals; all, if you may decide for others.

        `state` is `pending` unless it is given; those that wait are listed oldest first, others newest first.
        """
        state = request.query_params.get("state", GateState.PENDING)
        if state not in (*GateState.values, ALL):
            raise Invalid({"state": [f"Choose one of {', '.join((*GateState.values, ALL))}."]})
        found = _gates(request) if state == ALL else _gates(request).filter(gate=state)
        order = ("asked_at", "pk") if state == GateState.PENDING else ("-asked_at", "-pk")
        return page_of(request, found.order_by(*order), gate_json, "data")


class OneApproval(ApiView):
    """One approval."""

    @described("Get an approval", shapes.Approval)
    def get(self, request: Request, pk: int) -> Response:
        """One call that a person was asked about, as it stands now."""
        return Response(gate_json(_gates(request).get(pk=pk)))


class ApproveOne(ApiView):
    """Yes."""

    scope = Scope.DECIDE

    @described("Approve a call", shapes.Approval, request=Approve)
    def post(self, request: Request, pk: int) -> Response:
        """Approve a call, as it was shown or with an input of your own. 409 with its present state if it changed."""
        body = read(request, Approve)
        if body.remember:
            raise Invalid({"remember": ["Nothing can be remembered yet: approve each call."]})
        return _decided(request, WantedDecision(pk, decisions.Decision.APPROVE, body.digest, body.note, body.input))


class RejectOne(ApiView):
    """No."""

    scope = Scope.DECIDE

    @described("Reject a call", shapes.Approval, request=Reject)
    def post(self, request: Request, pk: int) -> Response:
        """Reject a call. It never runs; the agent is told the reason and goes on."""
        body = read(request, Reject)
        return _decided(request, WantedDecision(pk, decisions.Decision.REJECT, body.digest, body.reason))


class DecideTogether(ApiView):
    """Several at once."""

    scope = Scope.DECIDE

    @described("Decide several", shapes.Verdicts, request=Decisions)
    def post(self, request: Request) -> Response:
        """Decide at most 20 approvals, each for itself: the answer is 200, with a verdict for each in their order.

        Those that are approved must be of one risk: otherwise nothing is decided (400 `mixed_risk`).
        """
        wanted = read(request, Decisions).root
        shown = set(_gates(request).filter(pk__in=[each.id for each in wanted]).values_list("pk", flat=True))
        asked = [
            WantedDecision(d.id, d.decision, d.digest, d.reason, d.input, d.answer) for d in wanted if d.id in shown
        ]
        verdicts = iter(decide_many(asked, request.user, "api"))
        return Response({"results": [_verdict(d, next(verdicts) if d.id in shown else None) for d in wanted]})


def _gates(request: Request) -> QuerySet[Output]:
    """What this person may see of all that people were asked."""
    return shown_to(request.user, Output.objects.gates()).select_related("conversation__owner")


def _decided(request: Request, wanted: WantedDecision) -> Response:
    """The approval after its decision. Raises DecisionRefused, and DoesNotExist where it is not theirs to see."""
    _gates(request).get(pk=wanted.output_id)
    (verdict,) = decide_many([wanted], request.user, "api")
    if verdict.refused:
        raise verdict.refused
    return Response(gate_json(_gates(request).get(pk=wanted.output_id)))


def _verdict(wanted: Decision, verdict: DecisionOutcome | None) -> dict[str, JSON]:
    """What one decision came to: `approval` as it stands now, or `error`. None: there is no such approval for them."""
    if verdict and verdict.output:
        return {"id": wanted.id, "status": 200, "approval": gate_json(verdict.output)}
    refused = refusal(verdict.refused) if verdict and verdict.refused else None
    refused = refused or RequestRefused(404, "not_found", "There is no such approval, or it is not yours to see.")
    told = error_json(refused.code, str(refused.detail), **refused.details)
    return {"id": wanted.id, "status": refused.status_code, **told}
