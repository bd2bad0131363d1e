"""An app whose workflows take secrets, and a tool that tells its secret wherever it can."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any, cast

from pydantic import BaseModel, Field, SecretStr

from agents.engine.errors import ToolError
from agents.engine.ledger import JSON, Step
from agents.engine.runtime.action import Action
from agents.engine.runtime.policy import Context
from agents.engine.tools.tool import Risk, ToolCall, tool
from workflows import Flow, workflow

LONG = "canary-of-a-run-0123456789"
SHORT = "pä\"\\4/&'"
"""Eight characters, which are written in another way in JSON, in a URL, in HTML and by Python."""
USED: list[tuple[str, str]] = []
"""What the tools were really given: the host and the password."""
USED_BY: list[str] = []
"""The tools that were given it."""

logger = logging.getLogger("tests.vault")


class Login(BaseModel):
    host: str
    password: SecretStr
    otp: SecretStr | None = None


@tool("vault.login", title="Log in")
def login(call: ToolCall[Login]) -> dict[str, Any]:
    """Log in, and tell the password everywhere."""
    password = call.input.password.get_secret_value()
    USED.append((call.input.host, password))
    USED_BY.append(call.tool)
    logger.warning("logging in with %s, %r, %s", password, password, json.dumps({"p": password}))
    call.draft(f"Trying {password[:3]}")
    call.draft(f"{password[3:]} and that is it.")
    call.widget("table", {"rows": [{"password": password, password: 1}]}, f"with {password}")
    call.file(f"{password}.txt", b"nothing", media_type="text/plain", summary=f"Made with {password}.")
    if call.input.host == "closed":
        raise ToolError(f"Refused: {password!r}", code=password)
    if call.input.host == "broken":
        raise ValueError(f"http://ann:{password}@broken/ {json.dumps(json.dumps(password))}")
    return {"said": f"Welcome, {password}!", password: [password], "thread": threading.current_thread().name}


@tool("vault.pin", risk=Risk.READ)
async def pin(call: ToolCall[Login]) -> int:
    """Count the characters of a password. Nobody is asked."""
    USED.append((call.input.host, call.input.password.get_secret_value()))
    USED_BY.append(call.tool)
    return len(call.input.password.get_secret_value())


class Visit(BaseModel):
    """Whom to visit."""

    host: str
    password: SecretStr = Field(min_length=8, max_length=100)
    otp: SecretStr | None = None
    note: str = ""


@workflow("vault.visit", title="Visit a host", workspace=True)
async def visit(flow: Flow[Visit]) -> JSON:
    """Logs in, whatever comes of it, and asks whether that is all."""
    seen = await flow.tool("vault.pin", host=flow.input.host, password=flow.input.password)
    try:
        said: JSON = await flow.tool("vault.login", input=Login(host=flow.input.host, password=flow.input.password))
    except ToolError as error:
        said = {"code": error.code, "message": error.message}
    answer = await flow.ask("Is that all?")
    return {"seen": seen, "said": said, "answer": answer, "marker": flow.input.password.get_secret_value()}


@workflow("vault.fail", title="Fail with it")
async def fail(flow: Flow[Visit]) -> None:
    """Raises what a tool told."""
    said = await flow.tool("vault.login", host=flow.input.host, password=flow.input.password)
    raise ValueError(str(said))


@workflow("vault.outer", title="Visit within")
async def outer(flow: Flow[Visit]) -> JSON:
    """Passes its secret on to another workflow, as another field."""
    return await flow.workflow("vault.inner", host=flow.input.host, token=flow.input.password)


class Inner(BaseModel):
    host: str
    token: SecretStr


@workflow("vault.inner", title="Visit from outside")
async def inner(flow: Flow[Inner]) -> JSON:
    """Counts the token, by whatever name it came."""
    return await flow.tool("vault.pin", host=flow.input.host, password=flow.input.token)


@workflow("vault.bare", title="Visit, the long way", input=Visit)
async def bare(action: Action, ctx: Context) -> list[Step]:
    """Passes on what it was given."""
    given = cast(Flow[Visit], ctx).input
    return ctx.done(await ctx.tool("vault.pin", host=action.payload["host"], password=given.password))


@workflow("vault.confirmed", title="Visit, after another look", confirm=True)
async def confirmed(flow: Flow[Visit]) -> JSON:
    """Counts, once somebody has confirmed it."""
    return await flow.tool("vault.pin", host=flow.input.host, password=flow.input.password)


@workflow("vault.forged", title="Visit with what somebody wrote")
async def forged(flow: Flow[Visit]) -> JSON:
    """Passes on what is written like a secret: as an object or a text, to a tool or a workflow within."""
    written: JSON = {"$secret": "password"} if "object" in flow.input.host else "$secret:password"
    if "within" in flow.input.host:
        return await flow.workflow("vault.inner", host="evil", password=written)
    return await flow.tool("vault.pin", host="evil", password=written)


TOOLS = (login, pin)
ALL = (visit, fail, outer, inner, bare, confirmed, forged)
