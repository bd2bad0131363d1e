"""Validation of a request to Chat Completions, except for its messages."""

from __future__ import annotations

from agents.engine.ledger import JSON
from tests.wire import chat_history
from tests.wire.offered import check_tools
from tests.wire.refusals import RequestError, checked_body, optional, required

# fmt: off
PARAMETERS = frozenset({
    "audio", "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "messages",
    "metadata", "modalities", "model", "n", "parallel_tool_calls", "prediction", "presence_penalty",
    "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "response_format", "safety_identifier", "seed",
    "service_tier", "stop", "store", "stream", "stream_options", "temperature", "tool_choice", "tools",
    "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
})
# fmt: on
"""The parameters of a request: developers.openai.com/api/reference/resources/chat, its method create."""


def check(given: JSON, *, strict_turns: bool = True) -> None:
    """Raise RequestError for the first thing that the API refuses, or with `strict_turns` the strictest servers."""
    body = checked_body(given, PARAMETERS)
    for name, kind in (("stream", bool), ("store", bool), ("parallel_tool_calls", bool), ("stream_options", dict)):
        optional(body, name, kind)
    if body.get("stream_options") is not None and not body.get("stream"):
        message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise RequestError(message, "stream_options")
    if "parallel_tool_calls" in body and not body.get("tools"):
        message = (
            "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified."
        )
        raise RequestError(message, "parallel_tool_calls")
    check_tools(body, nested=True)
    chat_history.check(required(body, "messages", list), strict_turns=strict_turns)
