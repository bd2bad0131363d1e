"""Tools that tell the environment of the worker: in what they raise, in what they return, and in a file's summary."""

import json
import logging
import os
from typing import Any

from pydantic import BaseModel, SecretStr

from agents import Risk, ToolCall, tool
from agents.engine.errors import ToolError


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


class Login(BaseModel):
    host: str
    password: SecretStr


@tool("canary.login", risk=Risk.HIGH, offered=False)
def login(call: ToolCall[Login]) -> dict[str, Any]:
    """Log in."""
    password = call.input.password.get_secret_value()
    assert password not in call.input.host
    logging.getLogger("tests.canary").warning("with %s, %r and %s", password, password, json.dumps([password]))
    for piece in ("Trying ", *password, " and that was it."):
        call.draft(piece)
    call.widget("table", {"rows": [{"password": password, password: 1}]}, f"with {password}")
    call.file(f"{password}.txt", b"nothing", media_type="text/plain", summary=f"Of {password}.")
    if call.input.host == "closed":
        raise ToolError(f"Refused: {password!r}", code=password)
    if call.input.host == "broken":
        raise ValueError(f"http://ann:{password}@broken {json.dumps(json.dumps(password))}")
    return {"length": len(password), "said": f"Welcome, {password}!", password: [password]}
