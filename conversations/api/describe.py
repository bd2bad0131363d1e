"""How views describe themselves, for the API's OpenAPI description."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema

from conversations.api import shapes
from conversations.models import GateState

F = TypeVar("F", bound=Callable[..., Any])

SIZE = OpenApiParameter(
    "page_size",
    int,
    description="How many on a page: 50 unless given, 1 to 200; fewer where they are long. Follow `next`.",
)
LIST = (OpenApiParameter("page", int, description="Which page; 1 is the first."), SIZE)
CONVERSATIONS = (
    OpenApiParameter(
        "archived", bool, description="Those that were put away, or those that were not; the latter unless you search."
    ),
    OpenApiParameter(
        "search",
        str,
        description="Words, all of which stand in one title, one message or one text of the agent: the 200 newest.",
    ),
    *LIST,
)
STEPS = (OpenApiParameter("after", int, description="The seq of the last step you have; 0 for none."), SIZE)
MOMENT = (OpenApiParameter("at", int, description="The seq of a step; the last one unless given."),)
APPROVALS = (
    OpenApiParameter("state", str, enum=[*GateState.values, "all"], default="pending", description="Where they stand."),
    *LIST,
)
IDEMPOTENCY = (
    OpenApiParameter(
        "Idempotency-Key",
        str,
        OpenApiParameter.HEADER,
        description="A name of your own for this request, such as a UUID: sent again, it starts nothing twice.",
    ),
)
FILE = {(200, "application/octet-stream"): OpenApiTypes.BINARY}

ERRORS = {
    400: "The request cannot be taken: `invalid`, with `fields`, or `malformed`.",
    401: "Nobody is logged in and no key was sent (`not_authenticated`), or the key is not good (`bad_key`).",
    403: "You, or your key, may not do this: `forbidden`, `csrf_failed`.",
    404: "`not_found`: it is not there, or it is not yours.",
    409: "It is not as you think it is; the error says how it stands.",
    429: "`throttled`: wait for `retry_after` seconds, as the header Retry-After says too.",
}


def described(
    title: str,
    answer: Any,
    *,
    request: Any = None,
    parameters: Sequence[OpenApiParameter] = (),
) -> Callable[[F], F]:
    """Say what a view takes and answers. `answer`: a shape, or shapes by status; every error has the one shape."""
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
