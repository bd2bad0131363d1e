"""Create a project: a folder in the workspace, from a template, with a README and first tests."""

from __future__ import annotations

import io
import zipfile

from pydantic import BaseModel, Field

from agents.categories import PROJECTS
from agents.engine.errors import ToolError
from workflows.definition import workflow
from workflows.flow import Flow
from workflows.shipped.commands import TESTS, run_tests
from workflows.shipped.project.kinds import Project
from workflows.shipped.rejected import words_of

OLDEST = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the archive: the first that the format knows, so that the same files are the same bytes."""


class CreateProject(Project):
    """What to set up."""

    tests: bool = Field(
        True,
        title="Run its tests",
        description="Afterwards, to see that it works. You approve the command before it runs.",
    )


class Created(BaseModel):
    """A project that was set up; without files if a person rejected it. `tests`: what became of its first tests."""

    done: str
    folder: str = ""
    files: list[str] = []
    tests: str = "Not run."


@workflow("project.create", title="Create a project", category=PROJECTS, workspace=True)
async def create_project(flow: Flow[CreateProject]) -> Created:
    """Sets up a folder from a template, with a README and first tests. You see every file before it is written."""
    asked = Project.model_validate(flow.input.model_dump(exclude={"tests"}))
    await flow.tool("project.check", folder=asked.place)  # before anybody is asked
    steps = 3 if flow.input.tests else 2
    flow.progress(0, steps, f"Setting up {asked.place}")
    try:
        written = await flow.tool("project.write", input=asked)
    except ToolError as error:
        return Created(done=f"Nothing was set up: {words_of(error)}")
    project = Project.model_validate(written["project"])  # as it was approved: a person may have edited it
    folder, files = project.place, project.files
    flow.progress(1, steps, "Packing a copy to download")
    count = f"{len(files)} files of {project.name}, as they were set up."
    await flow.file(f"{folder}.zip", _zipped(files), media_type="application/zip", summary=count)
    tests = "Not run."
    if flow.input.tests:
        flow.progress(2, steps, "Running the tests")
        tests = (await run_tests(flow, f"cd {folder} && {TESTS}")).words
    flow.progress(steps, steps, "Set up")
    return Created(done=f"Set up {project.name}.", folder=folder, files=list(files), tests=tests)


def _zipped(files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path, OLDEST), text.encode())
    return content.getvalue()
