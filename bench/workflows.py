"""Three hundred workflows in twenty categories, for `bench.selector`."""

from __future__ import annotations

from pydantic import BaseModel, Field

from workflows import Category, Flow, workflow
from workflows.definition import Workflow

CATEGORIES, IN_EACH = 20, 15


class Job(BaseModel):
    """What each takes."""

    customer: str
    pieces: int = Field(default=1, ge=1)
    note: str = ""
    urgent: bool = False


def _made(category: int, number: int) -> Workflow:
    listed = Category(f"area{category:02}", f"Area {category}", "folder", category)

    @workflow(f"area{category:02}.job{number:02}", title=f"Job {number} of area {category}", category=listed)
    async def job(flow: Flow[Job]) -> str:
        """Does one of the many jobs of this area, for one customer, and says what came of it in a sentence or two."""
        return f"Done for {flow.input.customer}."

    return job


for _category in range(CATEGORIES):
    for _number in range(IN_EACH):
        globals()[f"job_{_category}_{_number}"] = _made(_category, _number)
