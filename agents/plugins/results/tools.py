"""Paging through what a call came to, for a model that was shown only head and tail of it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.engine.agent.projection import READ_ON, page
from agents.engine.errors import ToolError
from agents.engine.tools.tool import Risk, ToolCall, tool

PAGE_MOST = 16_000
"""Characters of a page. Where a model is shown less of any result, it is shown less of a page."""


class ResultPage(BaseModel):
    """What `results.read` takes."""

    result: str = Field(
        pattern=r"^\d{1,18}:.{1,200}$", description="The result's name, as it stands where it was truncated."
    )
    offset: int = Field(default=0, ge=0, description="The first character to read, counted from 0.")
    characters: int = Field(default=PAGE_MOST, ge=1, le=PAGE_MOST, description="How many characters to read.")


@tool(
    READ_ON,
    risk=Risk.READ,
    category="results",
    title="Read on in a result",
    says=lambda asked: f"read on in the result {asked.result}",
)
async def read_on(call: ToolCall[ResultPage]) -> str:
    """Read on in a result of this conversation that was truncated, from one character on."""
    prompt, _, path = call.input.result.partition(":")
    text = await call.services.result_of(int(prompt), path)
    start, total = call.input.offset, len(text)
    if start >= total:
        raise ToolError(f"The result has {total} characters: nothing stands at {start}.", code="past_the_end")
    return page(text[start : start + call.input.characters], start, total)
