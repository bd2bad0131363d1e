"""Pagination: lists are pages of the form `{"count", "next", "previous", "results"}`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, takewhile
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.db.models.functions import Length
from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from conversations.api.errors import Invalid
from conversations.display.shapes.base import Shape
from conversations.models import Step

M = TypeVar("M", bound=Model)
T = TypeVar("T")
SIZE = 50
SIZE_MOST = 200
TEXT_MOST = 4 * 2**20
"""The maximum number of characters on one page, unless a single row has more: 200 results may have 2 MB each."""
READ_AT_ONCE = 10
"""How many rows' text lengths are queried at once: SQLite must read a text to know its length."""


def paginate(request: Request, rows: QuerySet[M], shape: Callable[[M], Shape], text: str = "") -> Response:
    """Return a page of these ordered rows, each as a `shape`. `text`: see paginate_together."""
    return paginate_together(request, rows, lambda found: [shape(row) for row in found], text)


def paginate_together(
    request: Request, rows: QuerySet[M], shape: Callable[[Sequence[M]], Sequence[Shape]], text: str = ""
) -> Response:
    """Return a page by number, `?page=2`, with the shapes of all rows made by one call.

    `text` names a column that may be long. If a page would be too long, it has fewer rows, and so have its neighbours:
    a divisor of the requested size, so that a page of the new size begins at the same row. Raises Http404 if there is
    no such page, and ValueError for rows without an order: a row could stand on two pages, or on none.
    """
    if not rows.ordered:
        raise ValueError("Rows in pages need an order.")
    page, size, count = _page(request), _size(request), rows.count()
    start = _start(page, size, count)
    if text and start + (fit := _fitting(rows[start : start + size], text)) < min(start + size, count):
        size = max(part for part in range(1, fit + 1) if size % part == 0)
    return _response(request, start, size, count, shape(list(rows[start : start + size])))


def paginate_list(request: Request, items: Sequence[T], shape: Callable[[T], Shape]) -> Response:
    """Return a page by number of a list that is not in the database, each as a `shape`. Raises Http404."""
    size, count = _size(request), len(items)
    start = _start(_page(request), size, count)
    return _response(request, start, size, count, [shape(item) for item in items[start : start + size]])


def _start(page: int, size: int, count: int) -> int:
    """Return the index of the first row of a page. Raises Http404 if there is no such page."""
    start = (page - 1) * size
    if start < 0 or (start >= count and page > 1):
        raise Http404
    return start


def _response(request: Request, start: int, size: int, count: int, results: Sequence[Shape]) -> Response:
    page = start // size + 1
    links: dict[str, Any] = {"next": None, "previous": None}
    if start + size < count:
        links["next"] = _link(request, page=page + 1, page_size=size)
    if start:
        links["previous"] = _link(request, page=page - 1, page_size=size)
    return Response({"count": count, **links, "results": results})


def paginate_steps(request: Request, steps: QuerySet[Step], shape: Callable[[Step], Shape]) -> Response:
    """Return a page of steps by seq, beginning after `?after=`, so that a page stays the same while the ledger grows.

    A page that would be too long ends early.
    """
    after, size = number(request, "after", 0), _size(request)
    later, before = steps.filter(seq__gt=after).order_by("seq"), steps.filter(seq__lte=after).order_by("-seq")
    fit = _fitting(later[:size], "payload")
    found = list(later[:fit])
    links: dict[str, Any] = {"next": None, "previous": None}
    if later[fit:].exists():
        links["next"] = _link(request, after=found[-1].seq)
    if before.exists():
        fit = _fitting(before[:size], "payload")
        first = before[fit : fit + 1].values_list("seq", flat=True)
        links["previous"] = _link(request, after=first.first() or 0)
    return Response({"count": steps.count(), **links, "results": [shape(step) for step in found]})


def _fitting(rows: QuerySet[Any], text: str) -> int:
    """Return how many of these rows fit on one page by the length of this column; at least one."""
    lengths = rows.values_list(Length(text), flat=True).iterator(chunk_size=READ_AT_ONCE)
    sums = accumulate(length or 0 for length in lengths)
    return max(1, sum(1 for _ in takewhile(lambda total: total <= TEXT_MOST, sums)))


def _size(request: Request) -> int:
    """Return the size of a page. Raises Invalid, also for 0: after an empty page there would be no next one."""
    size = number(request, "page_size", SIZE, SIZE_MOST)
    if not size:
        raise Invalid({"page_size": ["Write a whole number, 1 or more."]})
    return size


def _page(request: Request) -> int:
    """Return the number of the page. Raises Http404 if it is not a number."""
    try:
        return number(request, "page", 1)
    except Invalid as error:
        raise Http404 from error


def _link(request: Request, **changed: int) -> str:
    """Return this request's URL with other numbers."""
    link: str = request.build_absolute_uri()
    for name, value in changed.items():
        link = replace_query_param(link, name, value)
    return link


def number(request: Request, name: str, default: int, most: int = 2**63 - 1) -> int:
    """Return a whole number of the query, at most `most`. Raises Invalid if it is not a number."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) <= 19):
        raise Invalid({name: ["Write a whole number."]})
    return min(int(given), most)
