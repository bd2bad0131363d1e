"""The engine: policies, the ledger and replay, in pure Python. It runs without Django."""

from agents.engine.agent.model import model
from agents.engine.deciding import answer, approve, reject
from agents.engine.errors import ToolError
from agents.engine.execution.effect import as_policy
from agents.engine.interfaces.journal import MemoryJournal
from agents.engine.ledger import Ledger, Step, action_call, action_result, text
from agents.engine.ledger import action_error as error
from agents.engine.limits import Limits
from agents.engine.runtime.action import Action
from agents.engine.runtime.decorators import invoke_action, loop_wrapper
from agents.engine.runtime.policy import Context
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.runtime.runner import run

__all__ = [
    "Action",
    "Context",
    "Ledger",
    "Limits",
    "MemoryJournal",
    "PolicyRegistry",
    "Step",
    "ToolError",
    "action_call",
    "action_result",
    "answer",
    "approve",
    "as_policy",
    "error",
    "invoke_action",
    "loop_wrapper",
    "model",
    "reject",
    "run",
    "text",
]
