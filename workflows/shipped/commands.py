"""Running tests in a workflow: a command of the workspace, which a person approves like any other."""

from __future__ import annotations

from typing import Any, NamedTuple

from agents.engine.errors import ToolError
from workflows.flow import Flow

TESTS = "python3 -B -m unittest discover -s tests -t ."
"""The command that runs the tests in the folder `tests` of the current one. It leaves no compiled files behind."""
NOT_RUN = ("rejected", "expired", "it_did_not", "not_permitted")
"""Codes of a command that somebody did not allow, or that did not run: that is no failure of the tests."""


class Tested(NamedTuple):
    """What became of the tests: whether they passed (None: they were not run), and that in a sentence."""

    passed: bool | None
    words: str


async def run_tests(flow: Flow[Any], command: str) -> Tested:
    """Run this command, if a person approves it. Raises ToolError if nobody knows what became of it."""
    try:
        ran = await flow.tool("shell.run", command=command)
    except ToolError as error:
        if error.code not in NOT_RUN:
            raise
        return Tested(None, f"Not run: {error.message}")
    if ran["exit"] == 0:
        return Tested(True, "They passed.")
    return Tested(False, f"They failed, with exit code {ran['exit']}: the output is shown with the command.")
