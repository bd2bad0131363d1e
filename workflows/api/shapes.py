"""Request bodies and response types of workflows: components of the OpenAPI document.

Each response type makes its own value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Self

from django.contrib.auth.models import User
from pydantic import Field, RootModel

from conversations.api.bodies import Body
from conversations.api.shapes import ListPage
from conversations.display.shapes.base import Shape, Text
from conversations.display.shapes.record import PromptHead
from conversations.models import Prompt
from workflows.definition import Workflow as DefinedWorkflow
from workflows.permissions import SeenWorkflow
from workflows.records import lines_of
from workflows.stars import starred_runs


class NewRun(Body):
    """What a workflow is started with, and the conversation of yours in which it runs; by default one of its own."""

    parameters: Annotated[dict[str, Any], Field(description="Its input, which fits the workflow's `schema`.")] = {}
    conversation: Annotated[int, Field(ge=1, lt=2**63)] | None = None


class Workflow(Shape):
    """A workflow. It is listed for those who may run it; for others only if an administrator says so."""

    name: Annotated[str, Field(description="Its name in addresses, such as `project.create`.")]
    title: str
    description: Text
    category: Annotated[str, Field(description="The id of its category.")]
    input_schema: Annotated[
        dict[str, Any], Field(alias="schema", description="The JSON Schema of the `parameters` of a run.")
    ]
    permission: Annotated[Text, Field(description="The permission that it takes to run it, if any.")]
    may_run: Annotated[bool, Field(description="Whether you may run it.")]
    why_not: Annotated[str | None, Field(description="Why you may not run it, in words.")]
    confirm: Annotated[bool, Field(description="Whether its form asks once more before it starts.")]
    schedulable: Annotated[bool, Field(description="Whether it may start while nobody is there.")]

    @classmethod
    def of(cls, seen: SeenWorkflow[DefinedWorkflow]) -> Self:
        """Return this workflow, for the person who sees it."""
        workflow = seen.workflow
        return cls.read(
            workflow,
            category=workflow.category.id,
            input_schema=workflow.schema,
            permission=seen.permission,
            may_run=seen.why_not is None,
            why_not=seen.why_not,
        )


class Category(Shape):
    """A category, and how many of the workflows that you see are in it."""

    id: Annotated[str, Field(description="Its id, by which workflows name it.")]
    name: str
    icon: Annotated[Text, Field(description="The name of an icon.")]
    order: Annotated[int, Field(description="Categories with a lower number come first.")]
    count: int


class Categories(RootModel[list[Category]]):
    """Categories, in their order."""

    @classmethod
    def of(cls, found: Iterable[SeenWorkflow[DefinedWorkflow]]) -> Self:
        """Return the categories of these workflows, each with how many of these are in it."""
        categories = [each.workflow.category for each in found]
        counts = Counter(each.id for each in categories)
        first = {each.id: each for each in reversed(categories)}
        ordered = sorted(first.values(), key=lambda each: (each.order, each.name, each.id))
        return cls([Category.read(each, count=counts[each.id]) for each in ordered])


class Run(PromptHead):
    """A run: a turn without its outputs, whose `input` is the line `/name key=value ...` that starts the same run."""

    result: Annotated[Text, Field(description="What came of it, in one line: what it returned, or why it failed.")]
    starred: Annotated[bool, Field(description="Whether you starred it on the pages.")]

    @classmethod
    def of_all(cls, user: User, runs: Sequence[Prompt]) -> list[Self]:
        """Return these runs of this person."""
        results, starred = lines_of(runs), starred_runs(user, runs)
        return [cls.of(run, result=results.get(run.pk), starred=run.pk in starred) for run in runs]


class WorkflowPage(ListPage[Workflow]):
    """A page of workflows."""


class RunPage(ListPage[Run]):
    """A page of runs."""
