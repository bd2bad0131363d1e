"""Usage: tokens and cost of the user who makes the request."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from agents.engine.ledger import JSON
from conversations.api import shapes
from conversations.api.describe import operation
from conversations.api.views import ApiView
from conversations.usage import quotas, storage
from conversations.usage.totals import DAY, MONTH, Spent, of_person, spent_json


class UsageView(ApiView):
    """Your own usage."""

    @operation("Get your usage", shapes.OwnUsage)
    def get(self, request: Request) -> Response:
        """Return the tokens and cost of the last 24 hours and the last 30 days, and your quota."""
        person = request.user.pk
        limits = quotas.limits(person)
        return Response(
            {
                "last_24_hours": _spending(of_person(person, DAY)),
                "last_30_days": _spending(of_person(person, MONTH)),
                "running_prompts": quotas.running(person),
                "storage_bytes": storage.used(person),
                "quota": {
                    "running_prompts": limits.running_prompts or None,
                    "tokens_a_day": limits.tokens_a_day or None,
                    "storage_bytes": storage.limit(person) or None,
                },
            }
        )


def _spending(spent: Spent) -> dict[str, JSON]:
    more = {"answers": spent.answers, "unpriced": spent.unpriced, "known_usd": spent.cost_nano_usd / 1e9}
    return spent_json(spent) | more
