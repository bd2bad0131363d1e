"""Validation of a request to the Responses API, except for its history."""

from __future__ import annotations

from agents.engine.ledger import JSON
from tests.wire import history
from tests.wire.offered import check_tools
from tests.wire.refusals import RequestError, checked_body, optional, required

# fmt: off
PARAMETERS = frozenset({
    "background", "conversation", "include", "input", "instructions", "max_output_tokens", "max_tool_calls",
    "metadata", "model", "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key",
    "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream", "stream_options",
    "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
})
# fmt: on
"""The parameters of a request: developers.openai.com/api/reference/resources/responses/methods/create."""


def check(given: JSON, *, strict_turns: bool = True) -> None:
    """Raise RequestError for the first thing that the API refuses, or with `strict_turns` the strictest servers."""
    body = checked_body(given, PARAMETERS)
    for name, kind in (("instructions", str), ("stream", bool), ("store", bool), ("parallel_tool_calls", bool)):
        optional(body, name, kind)
    _check_include(body)
    check_tools(body)
    if body.get("input") in (None, "", []):
        raise RequestError("Missing required parameter: 'input'.", "input", "missing_required_parameter")
    if not isinstance(body["input"], str):
        history.check(required(body, "input", list), strict_turns=strict_turns)


def _check_include(body: dict[str, JSON]) -> None:
    optional(body, "include", list)
    for index, name in enumerate(body.get("include") or ()):
        if not isinstance(name, str):
            place = f"include[{index}]"
            raise RequestError(f"Invalid type for '{place}': expected a string.", place, "invalid_type")
