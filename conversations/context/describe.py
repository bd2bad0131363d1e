"""How `/context` is described in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema

from conversations.api.describe import IDEMPOTENCY
from conversations.context import shapes
from conversations.context.body import ChatCompletionRequest

ERRORS = {
    400: "The request is not valid, or asks for what the agent does not do.",
    401: "You sent no key, or it is not valid.",
    403: "The key lacks the scope for this.",
    404: "There is no such model, conversation, turn or system prompt, or it is not yours.",
    409: "A turn of the conversation runs or waits, the turn was stopped, or the Idempotency-Key is another request's.",
    413: "The body is too long.",
    415: "The body is not JSON.",
    429: "You ask too often, have too much open, or have used up your tokens.",
    500: "The site failed.",
    502: "The model did not answer.",
    503: "The site was stopped by an administrator, or its database is busy.",
    504: "The turn took too long for one request. It goes on.",
}
ALWAYS = (401, 403, 429)
"""Those of every address."""
CHUNKS = {
    (200, "text/event-stream"): OpenApiResponse(
        shapes.ChunkEvent, "With `stream`: server-sent events, and `data: [DONE]` at the end."
    )
}
CONVERSATION = OpenApiParameter(
    "X-Conversation",
    str,
    OpenApiParameter.HEADER,
    description="The id of the conversation to go on in. Without it, the one whose texts your messages repeat.",
)

EXAMPLE = {"model": "normal", "messages": [{"role": "user", "content": "List the files."}]}


def _errors(*statuses: int) -> dict[Any, Any]:
    return {status: OpenApiResponse(shapes.OpenAIError, ERRORS[status]) for status in statuses}


models = extend_schema(
    operation_id="list_the_models_of_the_agent",
    summary="List the models of the agent",
    responses={200: shapes.TierList, **_errors(*ALWAYS)},
)
chat_completions = extend_schema(
    operation_id="have_the_agent_answer",
    summary="Have the agent answer",
    request=ChatCompletionRequest,
    responses={(200, "application/json"): shapes.ChatCompletion, **CHUNKS, **_errors(*ERRORS)},
    parameters=[CONVERSATION, *IDEMPOTENCY],
    examples=[OpenApiExample("A message", EXAMPLE, request_only=True)],
)
enhanced = extend_schema(
    operation_id="get_the_whole_prompt",
    summary="Get the whole prompt",
    responses={200: shapes.EnhancedPrompt, **_errors(400, *ALWAYS, 404, 503)},
    parameters=[
        OpenApiParameter(
            "protocol",
            str,
            description="How the model is told of the tools: apart, or in the text.",
            enum=["native", "json"],
            default="native",
        )
    ],
)
