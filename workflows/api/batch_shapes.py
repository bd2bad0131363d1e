"""Request bodies and response types of batches: components of the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from conversations.api.bodies import Body
from conversations.api.shapes import Id, ListPage, Shape
from workflows.batches.standing import STATES
from workflows.batches.table import LINES_MOST

LineState = Annotated[str, Field(json_schema_extra={"enum": STATES})]


class NewBatch(Body):
    """The inputs of the runs: either as JSON or as a CSV whose first line names fields of the workflow's `schema`."""

    lines: Annotated[list[dict[str, Any]], Field(description=f"The inputs, at most {LINES_MOST}.")] | None = None
    csv: Annotated[str, Field(description=f"The same as CSV, with at most {LINES_MOST} lines.")] | None = None


class StopBatch(Body):
    """Whether to stop also the runs that have not ended; by default, they go on."""

    running: bool = False


class BatchLine(Shape):
    """A line of a batch."""

    line: Annotated[int, Field(description="Its number, from 1.")]
    input: Annotated[
        dict[str, Any] | None, Field(description="Its input; null once it was redacted, or deleted with its run.")
    ]
    state: Annotated[
        LineState,
        Field(
            description="That of its run. Without one: `waits` if its turn is to come, `not_started` if it never comes,"
            " and `deleted` if the run was deleted."
        ),
    ]
    prompt: Annotated[int | None, Field(description="The id of its run.")]
    result: Annotated[str | None, Field(description="What its run returned, as text.")]
    reason: Annotated[str | None, Field(description="Why it failed, was stopped, or was not started, in words.")]


class BatchHead(Shape):
    """A batch without its lines: runs of one workflow for each line of a table, a few at a time."""

    id: Id
    workflow: Annotated[str, Field(description="The name of the workflow.")]
    created_at: str
    stopped_at: Annotated[str | None, Field(description="When it was stopped, if it was: no more lines start.")]
    counts: Annotated[dict[str, int], Field(description="How many lines are in each state.")]
    page: Annotated[str, Field(description="The address of its page.")]


class Batch(BatchHead):
    """A batch with its lines."""

    holds: Annotated[str | None, Field(description="Why the lines that wait cannot start now, if there is a reason.")]
    lines: list[BatchLine]


class BatchPage(ListPage[BatchHead]):
    """A page of batches."""
