"""Tools that tell the environment of the worker: in what they raise, in what they return, and in a file's summary."""

import os
from typing import Any

from pydantic import BaseModel

from agents import Risk, ToolCall, tool


class Nothing(BaseModel):
    pass


@tool("canary.fail", risk=Risk.READ)
async def fail(call: ToolCall[Nothing]) -> str:
    """Fail."""
    raise RuntimeError(str(dict(os.environ)))


@tool("canary.tell", risk=Risk.READ)
async def tell(call: ToolCall[Nothing]) -> dict[str, Any]:
    """Tell."""
    call.widget("table", {"rows": [dict(os.environ)]}, str(dict(os.environ)))
    return {"environment": dict(os.environ), os.environ["OPENAI_API_KEY"]: 1}
