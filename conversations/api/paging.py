"""Lists are pages: `{"count", "next", "previous", "results"}`."""

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

from agents.engine.ledger import JSON
from conversations.api.errors import Invalid
from conversations.models import Step

M = TypeVar("M", bound=Model)
SIZE = 50
SIZE_MOST = 200
TEXT_MOST = 4 * 2**20
"""Characters of the texts on one page, unless one row alone has more: two hundred results may have 2 MB each."""
READ_AT_ONCE = 10
"""Rows whose lengths are looked up at once: how long a text is, SQLite knows only when it has read it."""


def page_of(request: Request, rows: QuerySet[M], shown: Callable[[M], dict[str, JSON]], text: str = "") -> Response:
    """A page of these rows, which have an order, each as `shown` tells it. `text`: see page_together."""
    return page_together(request, rows, lambda found: [shown(row) for row in found], text)


def page_together(
    request: Request, rows: QuerySet[M], shown: Callable[[Sequence[M]], list[dict[str, JSON]]], text: str = ""
) -> Response:
    """A page by number, `?page=2`, where `shown` tells all its rows at once. Raises Http404 where there is none.

    `text` is a column that may be long. Where a page would be too long it has fewer rows, and its neighbours as many:
    a part of those that were asked for, so that pages of the new size begin where it begins.
    """
    page, size, count = _page(request), _size(request), rows.count()
    start = (page - 1) * size
    if start < 0 or (start >= count and page > 1):
        raise Http404
    if text and start + (fit := _fitting(rows[start : start + size], text)) < min(start + size, count):
        size = max(part for part in range(1, fit + 1) if size % part == 0)
    page = start // size + 1
    links: dict[str, Any] = {"next": None, "previous": None}
    if start + size < count:
        links["next"] = _link(request, page=page + 1, page_size=size)
    if start:
        links["previous"] = _link(request, page=page - 1, page_size=size)
    return Response({"count": count, **links, "results": shown(list(rows[start : start + size]))})


def steps_page(request: Request, steps: QuerySet[Step], shown: Callable[[Step], dict[str, JSON]]) -> Response:
    """A page of steps by seq: those after `?after=`, so that a page stays what it is while the ledger grows.

    It ends where it would be too long.
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
    return Response({"count": steps.count(), **links, "results": [shown(step) for step in found]})


def _fitting(rows: QuerySet[Any], text: str) -> int:
    """How many of these rows one page holds, the first in any case, by the length of this column."""
    lengths = rows.values_list(Length(text), flat=True).iterator(chunk_size=READ_AT_ONCE)
    sums = accumulate(length or 0 for length in lengths)
    return max(1, sum(1 for _ in takewhile(lambda total: total <= TEXT_MOST, sums)))


def _size(request: Request) -> int:
    """How many on a page. Raises Invalid, for none too: a page without rows has no end that a next one begins after."""
    size = number(request, "page_size", SIZE, SIZE_MOST)
    if not size:
        raise Invalid({"page_size": ["Write a whole number, 1 or more."]})
    return size


def _page(request: Request) -> int:
    """Which page. Raises Http404 for what is no number: there is no such page."""
    try:
        return number(request, "page", 1)
    except Invalid as error:
        raise Http404 from error


def _link(request: Request, **changed: int) -> str:
    """The address of this request with other numbers."""
    link: str = request.build_absolute_uri()
    for name, value in changed.items():
        link = replace_query_param(link, name, value)
    return link


def number(request: Request, name: str, default: int, most: int = 2**63 - 1) -> int:
    """A whole number of the query; one above `most` counts as `most`. Raises Invalid for what is no number."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) <= 19):
        raise Invalid({name: ["Write a whole number."]})
    return min(int(given), most)
