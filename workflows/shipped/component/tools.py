"""The tool that reads a component whole, with what belongs to it: what a refactoring is compared with afterwards."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.categories import CODE
from agents.engine.errors import ToolError
from agents.engine.ledger import JSON
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.files.box import Box, Entry, parts
from workflows.shipped.paths import is_apart

FILE_MOST = 200_000
"""Bytes of a file that is compared; of a larger one nobody would read the changes."""
TEXT_MOST = 500_000
"""Bytes of all files that are compared: they stand in the ledger, once before and once after."""
DEPTH, ENTRIES = 6, 500
"""Levels of folders, and entries of each folder, that are read."""
TESTS = "tests"
"""The folder in which tests are looked for."""


class Component(BaseModel):
    """The input of `component.read`."""

    path: str = Field(min_length=1, description="A file or a folder, relative to the workspace.")
    folder: str = Field("", description="The folder to read, instead of the one that it belongs to.")


@tool(
    "component.read",
    risk=Risk.READ,
    offered=False,
    category=CODE,
    title="Read a component",
    says=lambda asked: f"read {asked.path} and what belongs to it",
)
def read_component(call: ToolCall[Component]) -> dict[str, JSON]:
    """Read the text files of the folder that a component belongs to: of the nearest one with tests, or else its own.

    `files` are their texts by path, `left_out` the paths of those that are too large, and `tests` says whether the
    folder has tests.
    """
    box, path = Box(call.services.workspace()), "/".join(parts(call.input.path)) or "."
    folder = call.input.folder or _folder_of(box, path)
    files: dict[str, JSON] = {}
    left_out: list[JSON] = []
    room = TEXT_MOST
    for entry in _entries(box, folder):
        text = _text(box, entry) if entry.size <= min(FILE_MOST, room) else None
        if text is not None:
            files[entry.path] = text
            room -= entry.size
        elif entry.size > min(FILE_MOST, room):
            left_out.append(entry.path)
    return {"folder": folder, "files": files, "left_out": left_out, "tests": _has_tests(box, folder)}


def _folder_of(box: Box, path: str) -> str:
    """Return the folder that this file or folder belongs to. Raises ToolError if there is no such thing."""
    kind = box.kind(path)
    if kind is None:
        why = f"There is no {path!r} in this workspace: give its path, or choose the chat that has it in its workspace."
        raise ToolError(why, "not_found")
    if kind not in ("file", "folder"):
        raise ToolError(f"{path!r} is neither a file nor a folder.", "not_a_file")
    own = path if kind == "folder" else _above(path)
    folder = own
    while folder != "." and not _has_tests(box, folder):
        folder = _above(folder)
    return folder if _has_tests(box, folder) else own


def _above(path: str) -> str:
    return path.rpartition("/")[0] or "."


def _has_tests(box: Box, folder: str) -> bool:
    return box.kind(f"{folder}/{TESTS}") == "folder"


def _entries(box: Box, folder: str) -> list[Entry]:
    """Return the files of the folder, by path, without those in folders that programs write."""
    found = (entry for entry in box.walk(folder, DEPTH, ENTRIES) if entry.kind == "file")
    return sorted((entry for entry in found if not is_apart(entry.path)), key=lambda entry: entry.path)


def _text(box: Box, entry: Entry) -> str | None:
    """Return the text of a file; None if it is not text, or cannot be read."""
    try:
        text = box.read(entry.path, FILE_MOST).decode()
    except (ToolError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text
