"""The flow: what the function of a workflow is called with, a policy's context with the input of the workflow."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Generic

from pydantic import BaseModel
from typing_extensions import TypeVar

from agents.engine.ledger import JSON
from agents.engine.references import payload_json
from agents.engine.root import WORKFLOW
from agents.engine.runtime.action import Action
from agents.engine.runtime.policy import Context
from agents.engine.runtime.short import value_of

Input = TypeVar("Input", bound=BaseModel, default=BaseModel)


class Flow(Context, Generic[Input]):
    """A workflow's access to its run. `input` is what it was started with, as the model that it declares."""

    input: Input

    def workflow(
        self,
        name: str,
        /,
        *,
        key: str | None = None,
        input: dict[str, JSON] | BaseModel | None = None,
        **fields: object,
    ) -> Coroutine[Any, Any, JSON]:
        """Run another workflow within this one, and return its value. It belongs to the same run.

        Its input is `fields`, or `input` as a whole. Raises ToolError `not_permitted` if the person who started the run
        may not start that one, `unknown_policy` if there is none of this name, `invalid_input` if it does not accept
        the input, and its own errors.
        """
        if input is not None and fields:
            raise TypeError(f"flow.workflow({name!r}) takes its input as `input` or as fields, not both")
        given, secrets = payload_json(fields if input is None else input, f"the input of {name!r}")
        action = Action(f"{WORKFLOW}{name}", {"input": given}, secrets=secrets)
        return value_of(self.call(action, key=key), lambda value: value)
