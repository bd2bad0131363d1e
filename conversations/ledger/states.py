"""The state that plugins keep with a conversation, read from the ledger: of each plugin the newest."""

from __future__ import annotations

import json

from django.db import connection

from agents.engine.ledger import JSON
from conversations.models.step import OfPlugin

_NEWEST = """
    WITH RECURSIVE newest(payload) AS (
        SELECT ({next} ORDER BY {plugin} DESC, seq DESC LIMIT 1)
        UNION ALL
        SELECT ({next} AND {plugin} < {before} ORDER BY {plugin} DESC, seq DESC LIMIT 1)
        FROM newest WHERE newest.payload IS NOT NULL
    )
    SELECT payload FROM newest WHERE payload IS NOT NULL
"""
"""Goes from plugin to plugin through the index `step_state`, so that it costs the same however often each changed."""
_NEXT = """SELECT step.payload FROM conversations_step step
    WHERE conversation_id = %s AND type = 'state' AND prompt_id <> %s"""


def newest_states(conversation: int, prompt: int) -> dict[str, dict[str, JSON]]:
    """Return what each plugin keeps, by the plugin's name, as it was before this prompt's own steps.

    By steps, not by the numbers of prompts: a queued one may have been created before turns that ended before it began.
    """
    plugin, before = (OfPlugin.sql(f"{table}.payload", connection.vendor) for table in ("step", "newest"))
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST.format(next=_NEXT, plugin=plugin, before=before), [conversation, prompt] * 2)
        found = [json.loads(payload) for (payload,) in cursor.fetchall()]
    return {state["plugin"]: state["value"] for state in found}
