"""Workflows: what people start by name. `from workflows import Category, Flow, workflow`.

`UploadedFile`, `WorkspaceFile` and `WorkspaceFolder` are types of the fields of their input.

Each name is imported on first use, as in `agents`: Django loads this package before it is set up.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.categories import Category
    from workflows.definition import workflow
    from workflows.files import UploadedFile, WorkspaceFile, WorkspaceFolder
    from workflows.flow import Flow

__all__ = ["Category", "Flow", "UploadedFile", "WorkspaceFile", "WorkspaceFolder", "workflow"]

_FILES = ("UploadedFile", "WorkspaceFile", "WorkspaceFolder")
_MODULES = {"Category": "agents.categories", "Flow": "workflows.flow", "workflow": "workflows.definition"}
_MODULES |= dict.fromkeys(_FILES, "workflows.files")


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
