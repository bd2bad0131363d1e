"""The final answer: the tool by which a model gives an answer whose form somebody else chose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from agents.engine.foreign_schema import foreign_problems
from agents.engine.interfaces.provider import FINAL_ANSWER
from agents.engine.ledger import JSON
from agents.engine.schema import in_one_line
from agents.engine.tools.tool import Risk, Tool, ToolCall

HOW_TO_ANSWER = f"When you have your answer, give it by a call of the tool {FINAL_ANSWER}."
"""Added to the system text of an agent whose answer has a form."""
ITS_PURPOSE = "Give your final answer."
"""What the model reads about the tool, before what is said of the form."""


class AnyAnswer(BaseModel):
    """An answer whose form is a JSON Schema: that checks it."""

    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerBySchema(Tool):
    """The tool for an answer whose form a client sent as a JSON Schema."""

    form: dict[str, JSON]

    @property
    def schema(self) -> dict[str, JSON]:
        """The JSON Schema of the answer."""
        return self.form

    def problem(self, payload: dict[str, JSON]) -> str | None:
        """Return why this answer does not have the form; None if it has."""
        return in_one_line(self.problems(payload))

    def problems(self, payload: dict[str, JSON]) -> list[tuple[str, str]]:
        """Return each problem with this answer as (place, reason)."""
        return foreign_problems(self.form, payload)


def answer_by_model(output: type[BaseModel]) -> Tool:
    """Return the tool for an answer that is this pydantic model. Its input is checked like any other."""
    return Tool(description=_description(output.__doc__ or ""), input=output, **_declared())


def answer_by_schema(form: dict[str, JSON], about: str = "") -> Tool:
    """Return the tool for an answer that has this form, a JSON Schema. `about`: what is said of it."""
    return AnswerBySchema(description=_description(about), input=AnyAnswer, form=form, **_declared())


def _description(about: str) -> str:
    return f"{ITS_PURPOSE} {about.strip()}".strip()


def _declared() -> dict[str, Any]:
    async def take(call: ToolCall[Any]) -> str:
        return "That is the answer."

    return {
        "name": FINAL_ANSWER,
        "function": take,
        "risk": Risk.READ,
        "approval": False,
        "idempotent": True,
        "title": "Final answer",
    }
