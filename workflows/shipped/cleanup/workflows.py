"""Clean up a workspace: it proposes what may go, a person chooses, and exactly that is deleted."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from agents.categories import FILES
from agents.engine.errors import ToolError
from agents.plugins.files.usage import readable
from workflows.definition import workflow
from workflows.flow import Flow
from workflows.shipped.paths import Folder
from workflows.shipped.rejected import words_of

CELL_MOST = 480
"""Characters of a cell of the table; the choices have the whole path."""
STEPS = 3
PARTLY = "Only part of the workspace was checked: the rest is too much, too deep, or has names that cannot be used."


class CleanUp(BaseModel):
    """What to look for. Nothing is deleted before you have chosen it from a list."""

    folder: Folder = Field(".", description="The folder to look at. Leave it empty for the whole workspace.")
    temporary: bool = Field(
        True,
        title="Temporary files",
        description="Such as *.tmp, *.bak and *.swp, and caches that programs make again.",
    )
    duplicates: bool = Field(True, title="Duplicates", description="Files with the same content: all but one.")
    empty: bool = Field(True, title="Empty folders", description="Folders with nothing in them.")
    days: int = Field(
        180,
        ge=0,
        le=36_500,
        title="Old files: days since the last change",
        description="Files that have not changed for this many days. 0: age does not matter.",
    )
    megabytes: int = Field(
        100,
        ge=0,
        le=1_000_000,
        title="Large files: megabytes",
        description="Files of this size or more. 0: size does not matter.",
    )


class CleanedUp(BaseModel):
    """What was deleted, what was chosen and left alone with the reason for each, and how much space was freed."""

    done: str
    deleted: list[str] = []
    left_alone: list[str] = []
    freed: str = "0 bytes"


@workflow("workspace.clean_up", title="Clean up a workspace", category=FILES, workspace="required")
async def clean_up_workspace(flow: Flow[CleanUp]) -> CleanedUp:
    """Looks for duplicates, temporary, old and large files and empty folders. You choose what is deleted."""
    flow.progress(0, STEPS, "Looking at the workspace")
    found = await flow.tool("workspace.look", input=flow.input)
    proposed: list[dict[str, Any]] = found["proposed"]
    partly = "" if found["whole"] else f" {PARTLY}"
    if not proposed:
        return CleanedUp(done=f"There is nothing to clean up.{partly}")
    flow.progress(1, STEPS, f"{_count(len(proposed))} to choose from")
    rows = [[_cell(each["item"]["path"]), each["why"][:CELL_MOST], _size(each)] for each in proposed]
    await flow.tool("table.show", title="What can be deleted", columns=["Path", "Why", "Size"], rows=rows)
    more = f" {found['more']:,} more are smaller: clean up again to see them." if found["more"] else ""
    answer: Any = await flow.ask(choice(proposed, f"{more}{partly}"))
    chosen = _with_copies_that_stay([each["item"] for each in proposed], {*answer.delete})
    if not chosen:
        return CleanedUp(done="Nothing was deleted: nothing was chosen.")
    flow.progress(2, STEPS, f"{_count(len(chosen))} to delete")
    try:
        done = await flow.tool("workspace.delete", items=chosen)
    except ToolError as error:
        return CleanedUp(done=f"Nothing was deleted: {words_of(error)}")
    flow.progress(STEPS, STEPS, "Done")
    left = [f"{path}: {why}" for path, why in done["left"].items()]
    freed = readable(done["freed"])
    others = f" {len(left)} left alone." if left else ""
    said = f"Deleted {_count(len(done['deleted']))}, which frees {freed}.{others}" if done["deleted"] else ""
    return CleanedUp(
        done=said or f"Nothing was deleted.{others}", deleted=done["deleted"], left_alone=left, freed=freed
    )


def choice(proposed: list[dict[str, Any]], more: str) -> type[BaseModel]:
    """Return the form in which a person chooses what is deleted."""
    paths = tuple(each["item"]["path"] for each in proposed)
    one_of: Any = Literal[paths]
    hint = f"The table above has the reason for each.{more} Whatever you do not choose stays."
    field: Any = Field([], title="Delete", description=hint)
    return create_model("Choice", __doc__="What should be deleted?", delete=(list[one_of], field))


def _with_copies_that_stay(items: list[dict[str, Any]], chosen: set[str]) -> list[dict[str, Any]]:
    """Return the chosen items, each beside a copy that was not chosen, if one was listed: while that is there, it goes.

    Otherwise all listed copies go, which the card says.
    """
    stays = {item["same_as"]: item for item in items if item["same_as"] and item["path"] not in chosen}
    found = []
    for item in items:
        if item["path"] in chosen:
            first = item["same_as"] or item["path"]
            other = stays.get(first) if first in chosen else None
            found.append(item | {"same_as": other["path"], "same_mark": other["mark"]} if other else item)
    return found


def _cell(text: str) -> str:
    return text if len(text) <= CELL_MOST else f"…{text[1 - CELL_MOST :]}"


def _size(proposed: dict[str, Any]) -> str:
    size = proposed["item"]["size"]
    return "" if proposed["folder"] and not size else readable(size)


def _count(number: int) -> str:
    return "1 file or folder" if number == 1 else f"{number} files and folders"
