"""The extension API: `from agents import tool, ToolCall, ToolError, Risk, Plugin, Round, Output, register_output`.

Each name is imported on first use. A process that needs only one module of this package does not load the others, and
neither does Django while it loads its apps.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.engine.errors import ToolError
    from agents.engine.outputs.kinds import Output
    from agents.engine.outputs.registry import register_output
    from agents.engine.tools.plugin import Plugin, Round
    from agents.engine.tools.tool import Risk, ToolCall, tool

__all__ = ["Output", "Plugin", "Risk", "Round", "ToolCall", "ToolError", "register_output", "tool"]

_MODULES = {
    "Output": ("agents.engine.outputs.kinds", "Output"),
    "Plugin": ("agents.engine.tools.plugin", "Plugin"),
    "Risk": ("agents.engine.tools.tool", "Risk"),
    "Round": ("agents.engine.tools.plugin", "Round"),
    "ToolCall": ("agents.engine.tools.tool", "ToolCall"),
    "ToolError": ("agents.engine.errors", "ToolError"),
    "register_output": ("agents.engine.outputs.registry", "register_output"),
    "tool": ("agents.engine.tools.tool", "tool"),
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _MODULES[name]
    return getattr(import_module(module), attribute)
