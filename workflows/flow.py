"""The flow: what the function of a workflow is called with, a policy's context with the input of the workflow."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Generic

from pydantic import BaseModel
from typing_extensions import TypeVar

from agents.engine.ledger import JSON
from agents.engine.references import payload_json
from agents.engine.root import WORKFLOW
from agents.engine.runtime.policy import Context

Input = TypeVar("Input", bound=BaseModel, default=BaseModel)


class Flow(Context, Generic[Input]):
    """A workflow's access to its run. `input` is what it was started with, as the model that it declares."""

    input: Input

    def workflow(self, name: str, /, *, key: str | None = None, **input: object) -> Coroutine[Any, Any, JSON]:
        """Run another workflow within this one, and return its value. It belongs to the same run.

        Raises ToolError `not_permitted` if the person who started the run may not start that one, `unknown_policy` if
        there is none of this name, `invalid_input` if it does not accept the input, and its own errors.
        """
        return self.tool(f"{WORKFLOW}{name}", key=key, input={"input": payload_json(input, f"the input of {name!r}")})
