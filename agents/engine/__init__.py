"""The engine: policies, the ledger and replay, in pure Python. It runs without Django."""

from agents.engine.errors import ToolError
from agents.engine.ledger import Ledger, Step
from agents.engine.runtime.decorators import invoke_action, loop_wrapper
from agents.engine.runtime.policy import Action, Context
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.runtime.run import run

__all__ = ["Action", "Context", "Ledger", "PolicyRegistry", "Step", "ToolError", "invoke_action", "loop_wrapper", "run"]
