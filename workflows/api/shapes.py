"""Request bodies and response types of workflows: components of the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, RootModel

from conversations.api.bodies import Body
from conversations.api.shapes import ListPage, PromptHead, Shape


class NewRun(Body):
    """What a workflow is started with, and the conversation of yours in which it runs; by default one of its own."""

    parameters: Annotated[dict[str, Any], Field(description="Its input, which fits the workflow's `schema`.")] = {}
    conversation: Annotated[int, Field(ge=1, lt=2**63)] | None = None


class Workflow(Shape):
    """A workflow. It is listed for those who may run it; for others only if an administrator says so."""

    name: Annotated[str, Field(description="Its name in addresses, such as `project.create`.")]
    title: str
    description: str
    category: Annotated[str, Field(description="The id of its category.")]
    input_schema: Annotated[
        dict[str, Any], Field(alias="schema", description="The JSON Schema of the `parameters` of a run.")
    ]
    permission: Annotated[str | None, Field(description="The permission that it takes to run it, if any.")]
    may_run: Annotated[bool, Field(description="Whether you may run it.")]
    why_not: Annotated[str | None, Field(description="Why you may not run it, in words.")]
    confirm: Annotated[bool, Field(description="Whether its form asks once more before it starts.")]
    schedulable: Annotated[bool, Field(description="Whether it may start while nobody is there.")]


class Category(Shape):
    """A category, and how many of the workflows that you see are in it."""

    id: Annotated[str, Field(description="Its id, by which workflows name it.")]
    name: str
    icon: Annotated[str, Field(description="The name of an icon; empty for none.")]
    order: Annotated[int, Field(description="Categories with a lower number come first.")]
    count: int


class Categories(RootModel[list[Category]]):
    """Categories, in their order."""


class Run(PromptHead):
    """A run: a turn without its outputs, whose `input` is the line `/name key=value ...` that starts the same run."""

    result: Annotated[
        str | None, Field(description="What came of it, in one line: what it returned, or why it failed.")
    ]
    starred: Annotated[bool, Field(description="Whether you starred it on the pages.")]


class WorkflowPage(ListPage[Workflow]):
    """A page of workflows."""


class RunPage(ListPage[Run]):
    """A page of runs."""
