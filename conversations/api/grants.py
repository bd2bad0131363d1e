"""Grants: what the user has allowed to run without being asked. They are given with an approval."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from conversations.api import shapes
from conversations.api.bodies import NoFields, read
from conversations.api.describe import GRANTS, operation
from conversations.api.errors import Invalid
from conversations.api.paging import paginate
from conversations.api.views import ApiView
from conversations.approvals.grants import revoke
from conversations.display.shapes.grants import Grant
from conversations.models import Grant as GrantRow
from conversations.models import Scope

STATES = ("standing", "all")


class Grants(ApiView):
    """The list of grants."""

    @operation("List grants", shapes.GrantPage, parameters=GRANTS)
    def get(self, request: Request) -> Response:
        """List your grants, the newest first: those that still hold, or with `state=all` those that ended, too."""
        state = request.query_params.get("state", "standing")
        if state not in STATES:
            raise Invalid({"state": [f"Choose one of: {', '.join(STATES)}."]})
        mine = GrantRow.objects.filter(user=request.user)
        return paginate(request, mine if state == "all" else mine.standing(), Grant.of)


class RevokeGrant(ApiView):
    """Revoking one grant."""

    scopes = (Scope.DECIDE,)

    @operation("Revoke a grant", Grant, request=NoFields)
    def post(self, request: Request, pk: int) -> Response:
        """Revoke a grant, for good: from the next call on, you are asked again. Repeating it changes nothing."""
        read(request, NoFields)
        return Response(Grant.of(revoke(request.user, pk)))
