"""Refactor a component: an agent plans, a person approves the plan, an agent carries it out, and the tests run."""

from __future__ import annotations

from shlex import quote
from typing import Any

from pydantic import BaseModel, Field, field_validator

from agents.categories import CODE
from agents.engine.errors import ToolError
from workflows.definition import workflow
from workflows.flow import Flow
from workflows.shipped.commands import TESTS, Tested, run_tests
from workflows.shipped.component.changes import Changes, changes_between
from workflows.shipped.paths import in_workspace

READ = ("files.list", "files.read", "files.search")
WRITE = (*READ, "files.write", "files.edit")
"""The tools of the agent that plans, and of the one that carries out the plan: each of its changes asks, as ever."""
STEPS = 4
"""Of the whole: planning, the person's approval, carrying out, and the tests."""

PLAN = """Plan a refactoring of `{path}`, which is in the workspace.

What is wanted: {goal}

Read what you need first. Change nothing: a person has to approve your plan before anything is changed. Keep what the
code does, unless something else is wanted. Each step is one sentence, which names its file and what changes in it.
Leave the steps out if there is nothing to do, and say why in the summary."""

CARRY_OUT = """Carry out this plan for a refactoring of `{path}`, which is in the workspace. A person has approved it.

What is wanted: {goal}

The plan: {summary}

{steps}

Read each file before you change it. Do what the plan says, and nothing else. What cannot be done, leave out, and say
why. Each change is shown to a person, who may reject it. In the end, say in a few sentences what you did."""


class Refactoring(BaseModel):
    """What to refactor."""

    path: str = Field(
        min_length=1, max_length=300, description="The file or folder in the workspace, such as shop/receipt.py."
    )
    goal: str = Field(
        "Make it easier to read, without changing what it does.",
        min_length=3,
        max_length=2000,
        description="What should be improved, such as: rename total to sum_of_items.",
    )
    tests: str = Field(
        "",
        max_length=1000,
        title="Command for the tests",
        description="Runs at the end, if you approve it. Leave it empty to run the unit tests nearby.",
    )

    @field_validator("path")
    @classmethod
    def _path_is_in_the_workspace(cls, path: str) -> str:
        if "`" in path or not path.isprintable():
            raise ValueError("a path has no ` and no line breaks here")
        return in_workspace(path)


class Plan(BaseModel):
    """A plan for a refactoring."""

    summary: str = Field(description="What is to be done and why, in one or two sentences.")
    steps: list[str] = Field([], max_length=20, description="The steps in their order, one sentence each.")


class Refactored(BaseModel):
    """What was done, in the words of the agent; the files that were changed; and what became of the tests."""

    done: str
    files: list[str]
    tests: str


@workflow("component.refactor", title="Refactor a component", category=CODE, workspace="required")
async def refactor_component(flow: Flow[Refactoring]) -> Refactored:
    """Improves code in a workspace: an agent plans, you approve the plan and each change, and the tests run."""
    asked = flow.input
    found = await flow.tool("component.read", path=asked.path)
    flow.progress(0, STEPS, "Planning")
    plan = await flow.agent(PLAN.format(path=asked.path, goal=asked.goal), tools=READ, output=Plan)
    if not plan.steps:
        return Refactored(done=plan.summary, files=[], tests="Not run: nothing was changed.")
    flow.progress(1, STEPS, "The plan is waiting for approval")
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(plan.steps, 1))
    if not await flow.approve("Carry out this plan?", details=f"{plan.summary}\n\n{steps}"):
        done = "Nothing was changed: a person rejected the plan."
        return Refactored(done=done, files=[], tests="Not run: nothing was changed.")
    flow.progress(2, STEPS, "Carrying out the plan")
    before = await flow.tool("component.read", path=asked.path, folder=found["folder"])
    told = CARRY_OUT.format(path=asked.path, goal=asked.goal, summary=plan.summary, steps=steps)
    try:
        done = await flow.agent(told, tools=WRITE, rounds=20)
        flow.progress(3, STEPS, "Running the tests")
        tests = await _tested(flow, asked.tests, found)
    except ToolError:  # what was changed by then stays, so it is shown all the same
        await _show_since(flow, before)
        raise
    changes = await _show_since(flow, before)
    flow.progress(STEPS, STEPS, changes.summary)
    if tests.passed is False:
        raise ToolError(f"{tests.words} The changes are kept and shown: {changes.summary}", "tests_failed")
    return Refactored(done=done, files=[change.path for change in changes.files], tests=tests.words)


async def _tested(flow: Flow[Refactoring], command: str, found: dict[str, Any]) -> Tested:
    """Run the tests by this command, or those that were found."""
    if not command.strip() and not found["tests"]:
        return Tested(None, "Not run: there is no folder called tests nearby, and no command was given.")
    within = "" if found["folder"] == "." else f"cd {quote(found['folder'])} && "
    return await run_tests(flow, command.strip() or f"{within}{TESTS}")


async def _show_since(flow: Flow[Refactoring], before: dict[str, Any]) -> Changes:
    """Show what has changed since then, and return it."""
    after = await flow.tool("component.read", path=flow.input.path, folder=before["folder"])
    changes = changes_between(before["files"], after["files"], [*before["left_out"], *after["left_out"]])
    await flow.show(changes)
    if changes.files:
        patch, name = changes.patch.encode(), "changes.diff"
        await flow.file(name, patch, media_type="text/x-diff", summary=changes.summary)
    return changes
