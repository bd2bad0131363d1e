"""The tool that finds the tools that an agent is not offered, because there was no room for them."""

from __future__ import annotations

from agents.categories import TOOLS
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.tools.choice import FIND, ToolChoice
from agents.plugins.tools.finding import ALL_OFFERED, Words
from agents.plugins.tools.plugin import Tools


@tool(
    FIND,
    risk=Risk.READ,
    category=TOOLS,
    plugin=Tools,
    title="Find tools",
    says=lambda asked: f"looked for tools: {asked.words}",
)
async def find(call: ToolCall[Words, ToolChoice]) -> str:
    """Find tools that you do not have yet, by what they do. There are more than you are shown.

    You have what is found from your next answer on, as far as there is room.
    """
    return ALL_OFFERED  # true wherever the plugin leaves nothing out; where it does, the tool is bound to that
