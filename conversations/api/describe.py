"""Describing views in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema

from conversations.api import shapes
from conversations.display.shapes.events import ServerSentEvent
from conversations.models import GateState
from conversations.models.trigger import STATES as TRIGGER_STATES
from conversations.prompts.idempotency import KEY_MOST, OWN

F = TypeVar("F", bound=Callable[..., Any])


def _query(name: str, kind: type | dict[str, Any], description: str, **more: Any) -> OpenApiParameter:
    return OpenApiParameter(name, kind, description=description, **more)


def _whole(least: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least}


SIZE = _query(
    "page_size",
    _whole(1),
    "Results per page, 1 to 200; default 50. A page has fewer if they are long. Follow `next`.",
)
LIST = (_query("page", _whole(1), "The number of the page, from 1."), SIZE)
CONVERSATIONS = (
    _query(
        "archived", bool, "Only archived conversations, or only others. By default only others, or both if you search."
    ),
    _query(
        "search", str, "Words that all occur in one title, one message or one text of the agent. Finds the 200 newest."
    ),
    *LIST,
)
STEPS = (_query("after", _whole(0), "The seq of the last step you have; 0 if you have none."), SIZE)
MOMENT = (_query("at", _whole(0), "The seq of a step; by default the last one."),)
STATES = [*GateState.values, "all"]
APPROVALS = (
    _query("state", str, "The state of the approvals.", enum=STATES, default="pending"),
    _query("prompt", _whole(0), "The id of a prompt: only its approvals."),
    *LIST,
)
GRANTS = (_query("state", str, "Those that still hold, or all.", enum=["standing", "all"], default="standing"), *LIST)
TRIGGERS = (
    _query("state", str, "The state of the triggers.", enum=[*TRIGGER_STATES, "all"], default="all"),
    *LIST,
)
IDEMPOTENCY = (
    _query(
        "Idempotency-Key",
        {"type": "string", "minLength": 1, "maxLength": KEY_MOST, "pattern": f"^(?!{OWN})[ -~]+$"},
        "Your own identifier for this request, e.g. a UUID. Sending it again starts nothing twice.",
        location=OpenApiParameter.HEADER,
    ),
)
WAIT_MOST = 30
"""The longest time that a request waits for the end of what it started, in seconds."""
WAIT = (
    _query(
        "wait",
        _whole(1) | {"maximum": WAIT_MOST},
        f"Wait for the end of the run: at most so many seconds, 1 to {WAIT_MOST}.",
    ),
)
RESUMING = (
    _query("after", _whole(0), "The seq of the last event you have; 0 if you have none."),
    _query(
        "Last-Event-ID",
        {"type": "string", "pattern": "^[0-9]{0,18}$"},
        "The same number, as browsers send it when they reconnect.",
        location=OpenApiParameter.HEADER,
    ),
)
EVENTS = {(200, "text/event-stream"): OpenApiResponse(ServerSentEvent, "A stream of these events.")}
NO_MORE_EVENTS = {204: OpenApiResponse(description="You have the prompt's last event. Do not reconnect.")}
FILE = {(200, "application/octet-stream"): OpenApiTypes.BINARY}

ERRORS = {
    400: "The request is not valid: `invalid`, with `fields`, or `malformed`.",
    401: "You are not signed in and sent no key (`not_authenticated`), or the key is not valid (`bad_key`).",
    403: "You may not do this, or your key lacks the scope for it: `forbidden`, `csrf_failed`.",
    404: "`not_found`: it does not exist, or it is not yours.",
    409: "Conflict with the current state, which the error describes.",
    429: "`throttled`: wait `retry_after` seconds. The Retry-After header has the same number.",
}


def operation(
    title: str,
    answer: Any,
    *,
    request: Any = None,
    parameters: Sequence[OpenApiParameter] = (),
) -> Callable[[F], F]:
    """Document what a view accepts and returns. `answer`: a shape, or shapes by status. Errors share one shape."""
    good: Mapping[Any, Any] = answer if isinstance(answer, dict) else {200: answer}
    errors = {status: OpenApiResponse(shapes.Error, why) for status, why in ERRORS.items() if request or status != 409}
    decorate: Callable[[F], F] = extend_schema(
        operation_id=title.lower().replace("'", "").replace(" ", "_"),
        summary=title,
        request=request,
        responses={**good, **errors},
        parameters=list(parameters),
    )
    return decorate
