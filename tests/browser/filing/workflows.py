"""A workflow that takes files."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.categories import PROJECTS
from workflows import Flow, UploadedFile, WorkspaceFile, WorkspaceFolder, workflow


class Sales(BaseModel):
    title: str = Field(min_length=3, description="What stands above the sums.")
    table: UploadedFile = Field(title="Table of sales", description="A CSV file, with one sale on each line.")
    prices: UploadedFile | None = Field(default=None, title="Price list")
    template: WorkspaceFile = Field(default="template.md", description="How the report looks.")
    folder: WorkspaceFolder = Field(default=".", title="Folder for the report")
    notes: str = ""


@workflow("sales.sum", title="Sum up the sales", category=PROJECTS, workspace=True)
async def sum_up(flow: Flow[Sales]) -> str:
    """Adds up the sales of a month, and writes a report."""
    content = await flow.tool("files.read", path=flow.input.table)
    return f"{flow.input.title}: {flow.input.table} has {len(str(content))} characters."
