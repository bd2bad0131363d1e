"""The limits of turns, as the site's settings have them."""

from __future__ import annotations

from django.conf import settings

from agents.engine.limits import Limits


def limits() -> Limits:
    """Return the limits that the site's settings give a turn."""
    return Limits(
        rounds=settings.AGENTSITE_MAX_ROUNDS,
        seconds=settings.AGENTSITE_TURN_SECONDS,
        parse_failures=settings.AGENTSITE_PARSE_FAILURES,
        fallback=bool(settings.AGENTSITE_MODEL_FALLBACK),
        tool_seconds=settings.AGENTSITE_TOOL_SECONDS,
        approval_hours=settings.AGENTSITE_APPROVAL_HOURS,
        result_characters=settings.AGENTSITE_RESULT_CHARACTERS,
        history_tokens=settings.AGENTSITE_HISTORY_TOKENS,
        tool_tokens=settings.AGENTSITE_TOOL_TOKENS,
        blueprint_tokens=settings.AGENTSITE_BLUEPRINT_TOKENS,
        memory_tokens=settings.AGENTSITE_MEMORY_TOKENS,
    )
