"""The filters of a list of runs: what the query of a request asks for, and how the OpenAPI document describes it."""

from __future__ import annotations

from collections.abc import Iterable

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from conversations.api.describe import LIST
from conversations.api.errors import Invalid
from conversations.models import State
from workflows.history import STARTED_BY, RunFilter

OF_ONE = (
    OpenApiParameter("state", str, description="Only runs in this state.", enum=State.values),
    OpenApiParameter(
        "started_by",
        str,
        description="Only runs started this way: on a page of the site, by the API, by the command line.",
        enum=list(STARTED_BY),
    ),
    OpenApiParameter("starred", bool, description="Only runs that you starred: `true`."),
    OpenApiParameter("search", str, description="Words that all occur in a run's `input`, or all in what came of it."),
    *LIST,
)
"""Of the runs of one workflow."""
OF_ALL = (
    OpenApiParameter("workflow", str, description="Only runs of the workflow of this name, installed or not."),
    *OF_ONE,
)
"""Of all runs."""


def read_filter(request: Request, workflow: str = "") -> RunFilter:
    """Return what the query asks for. `workflow`: of this one alone. Raises Invalid, naming the choices."""
    asked = request.query_params
    return RunFilter(
        workflow=workflow or asked.get("workflow", ""),
        state=_one_of(request, "state", State.values),
        started_by=_one_of(request, "started_by", STARTED_BY),
        starred=_one_of(request, "starred", ("true", "false")) == "true",
        search=asked.get("search", ""),
    )


def _one_of(request: Request, name: str, choices: Iterable[str]) -> str:
    given: str = request.query_params.get(name, "")
    if given and given not in choices:
        raise Invalid({name: [f"Choose one of: {', '.join(choices)}."]})
    return given
