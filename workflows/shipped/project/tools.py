"""The tools that set up a project: one looks whether its folder is free, one writes all of its files on one card."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.categories import PROJECTS
from agents.engine.errors import ToolError
from agents.engine.ledger import JSON
from agents.engine.outputs.change import Change
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.files.box import Box
from agents.plugins.files.usage import readable
from agents.plugins.files.writing import check_space
from workflows.shipped.project.kinds import Project

DEPTH, ENTRIES = 10, 1000
"""Levels of folders, and entries of each folder, that are searched for files of somebody else."""


class Place(BaseModel):
    """The input of `project.check`."""

    folder: str = Field(min_length=1, description="The folder of a project to set up, in the workspace.")


@tool(
    "project.check",
    risk=Risk.READ,
    offered=False,
    category=PROJECTS,
    title="Check the folder",
    says=lambda asked: f"checked that {asked.folder} is free",
)
def check_folder(call: ToolCall[Place]) -> str:
    """Check that nothing is in the place of a new folder."""
    if Box(call.services.workspace()).kind(call.input.folder) is not None:
        raise exists(call.input.folder)
    return f"There is no {call.input.folder} yet."


def planned(call: ToolCall[Project]) -> Change:
    """Return all that would be written, as one text. Raises ToolError if the folder holds anything else.

    What an attempt that was cut off has written is the same text in the same place, and is written again.
    """
    box, place, files = Box(call.services.workspace()), call.input.place, call.input.files
    there = box.kind(place)
    if there not in (None, "folder"):
        raise exists(place)
    for entry in box.walk(place, DEPTH, ENTRIES) if there else ():
        same = entry.path in files and entry.size == len(files[entry.path].encode())
        if entry.kind != "folder" and not (same and box.read(entry.path, entry.size) == files[entry.path].encode()):
            raise exists(place)
    return Change(path=f"{place}/", before=None, after=listing(files))


def exists(place: str) -> ToolError:
    """Return the error for a folder that is there already."""
    why = f"{place!r} exists in this workspace already, and nothing is written over: choose another name or folder."
    return ToolError(why, "exists")


def listing(files: dict[str, str]) -> str:
    """Return these files as one text: each begins with a line that has its path."""
    return "\n".join(f"===== {path} =====\n{text}" for path, text in files.items())


def facts(call: ToolCall[Project]) -> list[str]:
    """Return the facts on the card: how many files, and that none is lost."""
    files = call.input.files
    size = sum(len(text.encode()) for text in files.values())
    return [
        f"Creates the folder {call.input.place} with {len(files)} files, {readable(size)}.",
        "Nothing that exists is written over.",
    ]


# One call for all the files, and not one of `files.write` for each: people want to see a project as a whole, and decide
# once. It is gated as a write is, for whoever calls it: the card shows every line of every file, and an edited name or
# description changes them all. It may run again after a crash: it writes the same, or refuses.
@tool(
    "project.write",
    risk=Risk.WRITE,
    idempotent=True,
    offered=False,
    category=PROJECTS,
    title="Set up a project",
    says=lambda asked: f"set up {asked.place}",
    justify=lambda asked: f"Set up: {asked.place}/",
    facts=facts,
    change=planned,
    undoable="To undo it, delete the new folder.",
)
def write_project(call: ToolCall[Project]) -> dict[str, JSON]:
    """Set up a folder in the workspace from a template: a README, a first component or page, and first tests."""
    box, files = Box(call.services.workspace()), call.input.files
    planned(call)  # what appeared there since it was approved stays
    check_space(call.services.space(), box, sum(len(text.encode()) for text in files.values()), len(files))
    for path, text in files.items():
        box.write(path, text.encode())
    return {"folder": call.input.place, "project": call.input.model_dump(mode="json")}
