"""A workflow that is given a secret, for a tool that tells it wherever it can."""

from typing import Any

from pydantic import BaseModel, Field, SecretStr

from agents.engine.errors import ToolError
from workflows import Flow, workflow


class Round(BaseModel):
    password: SecretStr = Field(min_length=8)


@workflow("canary.round", title="Go from door to door")
async def door_to_door(flow: Flow[Round]) -> list[Any]:
    """Logs in at each door, says how far it is, sleeps, asks, and fails with what it was told."""
    said = []
    for number, host in enumerate(("office", "closed", "broken"), 1):
        flow.progress(number, 3, f"At {host}")
        try:
            said.append(await flow.tool("canary.login", host=host, password=flow.input.password))
        except ToolError as error:
            said.append(f"{error.code}: {error.message}")
    answer = await flow.ask("Is that all?")
    raise ValueError(f"{answer} {said}")
