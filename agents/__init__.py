"""The extension API: `from agents import tool, policy, agent, service, ToolCall, ToolError, Risk, Plugin, Round, ...`.

Each name is imported on first use. A process that needs only one module of this package does not load the others, and
neither does Django while it loads its apps.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.engine.agent.turn import agent
    from agents.engine.errors import ToolError
    from agents.engine.interfaces.app_services import service
    from agents.engine.ledger import Step
    from agents.engine.outputs.kinds import Output
    from agents.engine.outputs.registry import register_output
    from agents.engine.runtime.action import Action
    from agents.engine.runtime.policy import Context
    from agents.engine.runtime.registry import policy
    from agents.engine.tools.plugin import Plugin, Round
    from agents.engine.tools.tool import SANDBOXED, Risk, ToolCall, tool

__all__ = [
    "SANDBOXED",
    "Action",
    "Context",
    "Output",
    "Plugin",
    "Risk",
    "Round",
    "Step",
    "ToolCall",
    "ToolError",
    "agent",
    "policy",
    "register_output",
    "service",
    "tool",
]

_MODULES = {
    "SANDBOXED": "agents.engine.tools.tool",
    "Action": "agents.engine.runtime.action",
    "Context": "agents.engine.runtime.policy",
    "Output": "agents.engine.outputs.kinds",
    "Plugin": "agents.engine.tools.plugin",
    "Risk": "agents.engine.tools.tool",
    "Round": "agents.engine.tools.plugin",
    "Step": "agents.engine.ledger",
    "ToolCall": "agents.engine.tools.tool",
    "ToolError": "agents.engine.errors",
    "agent": "agents.engine.agent.turn",
    "policy": "agents.engine.runtime.registry",
    "register_output": "agents.engine.outputs.registry",
    "service": "agents.engine.interfaces.app_services",
    "tool": "agents.engine.tools.tool",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
