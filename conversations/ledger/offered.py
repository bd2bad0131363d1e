"""The tools that a round was offered, as its snapshot has them: also those that no installed app has any more."""

from __future__ import annotations

from agents.engine.paths import parent
from agents.engine.tools.snapshot import OfferedTool, offered_tools
from agents.engine.tools.tool import wire_name
from conversations.models import Snapshot, Step


def offered_tool(conversation: int, prompt: int, path: str, name: str) -> OfferedTool | None:
    """Return the tool of this name as the round was offered it that asked for the call at `path`.

    None if no round asked for the call, or its snapshot is gone.
    """
    starts = Step.objects.filter(conversation=conversation, prompt=prompt, path=parent(path), type="action_start")
    start = starts.order_by("-seq").first()
    stored = Snapshot.objects.filter(pk=start.content.get("snapshot", "")).first() if start else None
    offered = offered_tools(stored.text) if stored else []
    return next((tool for tool in offered if tool.name == wire_name(name)), None)
