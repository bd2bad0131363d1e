"""The tool that pages through a long result, of which the model saw only the beginning and the end."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.categories import RESULTS
from agents.engine.agent.projection import READ_ON, page
from agents.engine.errors import ToolError
from agents.engine.tools.tool import NEEDED, Risk, ToolCall, tool

PAGE_MOST = 16_000
"""Characters of a page. A model that is shown less of any result is shown less of a page, too."""


class ResultPage(BaseModel):
    """The input of `results.read`."""

    result: str = Field(
        pattern=r"^\d{1,18}:.{1,200}$", description="The result's name, as given where it was truncated."
    )
    offset: int = Field(default=0, ge=0, description="The first character to read, counting from 0.")
    characters: int = Field(default=PAGE_MOST, ge=1, le=PAGE_MOST, description="How many characters to read.")


@tool(
    READ_ON,
    risk=Risk.READ,
    category=RESULTS,
    priority=NEEDED,
    title="Read on in a result",
    says=lambda asked: f"read on in the result {asked.result}",
)
async def read_on(call: ToolCall[ResultPage]) -> str:
    """Read more of a truncated result of this conversation, starting at a given character."""
    prompt, _, path = call.input.result.partition(":")
    text = await call.services.result_of(int(prompt), path)
    start, total = call.input.offset, len(text)
    if start >= total:
        raise ToolError(f"The result has {total} characters: there is nothing at {start}.", code="past_the_end")
    return page(text[start : start + call.input.characters], start, total)
