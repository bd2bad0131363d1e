"""Request bodies and response types of batches: components of the OpenAPI document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import Field, WithJsonSchema

from conversations.api.bodies import Body
from conversations.api.shapes import ListPage
from conversations.display.shapes.base import Id, OptionalTime, Shape, Text, Time
from workflows.batches.standing import STATES, StandingLine, counts_of, standing_of
from workflows.batches.table import LINES_MOST
from workflows.models import Batch as BatchRow

LineState = Annotated[str, WithJsonSchema({"type": "string", "enum": STATES})]


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
    result: Annotated[Text, Field(description="What its run returned, as text.")]
    reason: Annotated[Text, Field(description="Why it failed, was stopped, or was not started, in words.")]

    @classmethod
    def of(cls, line: StandingLine) -> Self:
        """Return this line."""
        input = None if line.input is None else dict(line.input)
        return cls.read(line, line=line.number, input=input, prompt=line.run.pk if line.run else None)


class BatchHead(Shape):
    """A batch without its lines: runs of one workflow for each line of a table, a few at a time."""

    id: Id
    workflow: Annotated[str, Field(description="The name of the workflow.")]
    created_at: Time
    stopped_at: Annotated[OptionalTime, Field(description="When it was stopped, if it was: no more lines start.")]
    counts: Annotated[dict[str, int], Field(description="How many lines are in each state.")]
    page: Annotated[str, Field(description="The address of its page.")]

    @classmethod
    def of(cls, batch: BatchRow, counts: Counter[str], **more: Any) -> Self:
        """Return this batch, with the fields that the shape has `more`."""
        return cls.read(batch, counts=dict(counts), page=batch.get_absolute_url(), **more)

    @classmethod
    def of_all(cls, batches: Sequence[BatchRow]) -> list[Self]:
        """Return these batches, whose lines are counted once for all."""
        counts = counts_of(batches)
        return [cls.of(each, counts[each.pk]) for each in batches]


class Batch(BatchHead):
    """A batch with its lines."""

    holds: Annotated[Text, Field(description="Why the lines that wait cannot start now, if there is a reason.")]
    lines: list[BatchLine]

    @classmethod
    def now(cls, batch: BatchRow) -> Self:
        """Return this batch as it stands now."""
        standing = standing_of(batch)
        lines = [BatchLine.of(line) for line in standing.lines]
        return cls.of(batch, standing.counts, holds=standing.holds, lines=lines)


class BatchPage(ListPage[BatchHead]):
    """A page of batches."""
