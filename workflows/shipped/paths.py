"""Paths in the inputs of workflows: files and folders of the workspace, checked before anything starts."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from agents.engine.errors import ToolError
from agents.plugins.files.box import file_parts, parts
from workflows.files import WorkspaceFolder

APART = ("__pycache__", "node_modules")
"""Folders that programs write, beside those whose names begin with a dot."""
REPORT = ".md"
"""How the name of a report ends."""


def in_workspace(path: str) -> str:
    """Return a path relative to the workspace, as short as it can be. Raises ValueError if it leads outside."""
    try:
        return "/".join(parts(path.strip())) or "."
    except ToolError as error:
        raise ValueError(error.message) from error


def is_apart(path: str) -> bool:
    """Whether a file is in a folder that programs write, and so nobody's document."""
    return any(name.startswith(".") or name in APART for name in path.split("/")[:-1])


def _report(path: str) -> str:
    if not path.isprintable():
        raise ValueError("use visible characters only")
    try:
        names = file_parts(path.strip())
    except ToolError as error:
        raise ValueError(error.message) from error
    if not names[-1].lower().endswith(REPORT):
        raise ValueError(f"it is a Markdown file: let its name end in {REPORT}")
    return "/".join(names)


Folder = Annotated[WorkspaceFolder, Field(min_length=1, max_length=300), AfterValidator(in_workspace)]
"""A folder of the workspace."""
ReportPath = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_report)]
"""The Markdown file that a report is written to."""
