"""The durable core: policies, the ledger, replay. Pure Python; runs without Django."""

from agents.engine.context import Context
from agents.engine.decorators import invoke_action, loop_wrapper
from agents.engine.errors import ToolError
from agents.engine.ledger import Ledger, Step
from agents.engine.policy import Action, PolicyRegistry
from agents.engine.runtime import run

__all__ = ["Action", "Context", "Ledger", "PolicyRegistry", "Step", "ToolError", "invoke_action", "loop_wrapper", "run"]
