"""Lists are pages: `{"count", "next", "previous", "results"}`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework.pagination import PageNumberPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from agents.engine.ledger import JSON
from conversations.api.errors import Invalid
from conversations.models import Step

M = TypeVar("M", bound=Model)
SIZE = 50
SIZE_MOST = 200


class Pages(PageNumberPagination):  # type: ignore[misc]
    """Pages by number, `?page=2`."""

    page_size = SIZE
    page_size_query_param = "page_size"
    max_page_size = SIZE_MOST


def page_of(request: Request, rows: QuerySet[M], shown: Callable[[M], dict[str, JSON]]) -> Response:
    """A page of these rows, which have an order, each as `shown` tells it."""
    return page_together(request, rows, lambda found: [shown(row) for row in found])


def page_together(
    request: Request, rows: QuerySet[M], shown: Callable[[Sequence[M]], list[dict[str, JSON]]]
) -> Response:
    """The same, where `shown` tells all rows of the page at once."""
    _size(request)
    pages = Pages()
    found = pages.paginate_queryset(rows, request)
    response: Response = pages.get_paginated_response(shown(found))
    return response


def steps_page(request: Request, steps: QuerySet[Step], shown: Callable[[Step], dict[str, JSON]]) -> Response:
    """A page of steps by seq: those after `?after=`, so that a page stays what it is while the ledger grows."""
    after, size = number(request, "after", 0), _size(request)
    found = list(steps.filter(seq__gt=after).order_by("seq")[: size + 1])
    before = steps.filter(seq__lte=after).order_by("-seq").values_list("seq", flat=True)
    links: dict[str, Any] = {"next": None, "previous": None}
    if len(found) > size:
        links["next"] = _link(request, found[size - 1].seq)
    if before.exists():
        links["previous"] = _link(request, before[size : size + 1].first() or 0)
    return Response({"count": steps.count(), **links, "results": [shown(step) for step in found[:size]]})


def _size(request: Request) -> int:
    """How many on a page. Raises Invalid, for none too: a page without rows has no end that a next one begins after."""
    size = number(request, "page_size", SIZE, SIZE_MOST)
    if not size:
        raise Invalid({"page_size": ["Write a whole number, 1 or more."]})
    return size


def _link(request: Request, after: int) -> str:
    link: str = replace_query_param(request.build_absolute_uri(), "after", after)
    return link


def number(request: Request, name: str, default: int, most: int = 2**63 - 1) -> int:
    """A whole number of the query; one above `most` counts as `most`. Raises Invalid for what is no number."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) <= 19):
        raise Invalid({name: ["Write a whole number."]})
    return min(int(given), most)
