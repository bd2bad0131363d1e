"""The tools that clean up a workspace: one says what may go, one deletes what a person chose and nobody changed."""

from __future__ import annotations

import os
from typing import Any

from pydantic import BaseModel, Field

from agents.categories import FILES
from agents.engine.errors import ToolError
from agents.engine.ledger import JSON
from agents.engine.outputs.change import Change
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.files.box import Box
from agents.plugins.files.status import tool_errors
from agents.plugins.files.usage import readable
from workflows.shipped.cleanup.labels import label_of, path_of
from workflows.shipped.cleanup.looking import DEPTH, ENTRIES, Proposal, Wish, now_at, proposals
from workflows.shipped.paths import in_workspace

PROPOSED_MOST = 200
"""What is proposed at once: those that free most. More than that nobody reads."""
CHANGED = "It has changed since it was listed."
GONE = "It was gone already."


class Look(BaseModel):
    """The input of `workspace.look`."""

    folder: str = Field(min_length=1, description="A folder of the workspace.")
    temporary: bool = True
    duplicates: bool = True
    empty: bool = True
    days: int = Field(0, ge=0)
    megabytes: int = Field(0, ge=0)


class Item(BaseModel):
    """Something to delete, as it was when it was listed.

    `path` and `same_as` are labels: what is invisible in a name is escaped. `mark` is the state of what is deleted, and
    `same_mark` that of the file of the same content, which stays.
    """

    path: str = Field(min_length=1)
    size: int = Field(ge=0)
    mark: str
    same_as: str = ""
    same_mark: str = ""


class Deletion(BaseModel):
    """The input of `workspace.delete`."""

    items: list[Item] = Field(min_length=1, max_length=PROPOSED_MOST)


@tool(
    "workspace.look",
    risk=Risk.READ,
    offered=False,
    category=FILES,
    time_limit=120,
    title="Look at the workspace",
    says=lambda asked: "looked at the workspace" if asked.folder == "." else f"looked at {asked.folder}",
)
def look_at_workspace(call: ToolCall[Look]) -> dict[str, JSON]:
    """Say what may go: `proposed`, each with the reason, what frees most first.

    `more` is how many others there are, and `whole` says whether all of the folder was looked at.
    """
    asked = call.input
    wish = Wish(asked.temporary, asked.duplicates, asked.empty, asked.days, asked.megabytes)
    box = Box(call.services.workspace())
    found, whole = proposals(box, in_workspace(asked.folder), wish, call.services.now())
    shown: list[JSON] = [_proposed(each) for each in found[:PROPOSED_MOST]]
    return {"proposed": shown, "more": max(0, len(found) - PROPOSED_MOST), "whole": whole}


def _proposed(proposal: Proposal) -> dict[str, JSON]:
    seen, same = proposal.seen, proposal.same_as
    reasons = [*proposal.reasons, *([f"The same content as {label_of(same.path)}."] if same else [])]
    item = Item(path=label_of(seen.path), size=seen.size, mark=seen.mark)
    if same:
        item = item.model_copy(update={"same_as": label_of(same.path), "same_mark": same.mark})
    return {"item": item.model_dump(mode="json"), "why": " ".join(reasons), "folder": seen.kind == "folder"}


def planned(call: ToolCall[Deletion]) -> Change:
    """Return what is deleted, as a list of which every line goes."""
    lines = [f"{item.path}  ({readable(item.size)})\n" for item in call.input.items]
    return Change(path="Workspace", before="".join(lines), after="")


def facts(call: ToolCall[Deletion]) -> list[str]:
    """Return the facts on the card: how much goes, of what no copy stays, and that it does not come back."""
    items = call.input.items
    count = "1 file or folder" if len(items) == 1 else f"{len(items)} files and folders"
    freed = readable(sum(item.size for item in items))
    last = sorted({item.same_as for item in items} & {item.path for item in items})
    return [
        f"Deletes {count} from the workspace, and frees {freed}.",
        *(f"All listed copies of {path} are deleted." for path in last),
        "Deleted files cannot be restored here.",
        "Anything that has changed since it was listed is kept.",
    ]


# A gate beside the choice that the person has just made: to answer a question is no approval. Who may decide about what
# is destructive, whether four eyes are needed, and for how long it holds, are rules for gates. It may run again after a
# crash: what is gone by then is what it has deleted.
@tool(
    "workspace.delete",
    risk=Risk.DESTRUCTIVE,
    idempotent=True,
    offered=False,
    category=FILES,
    time_limit=300,
    title="Delete files",
    says=lambda asked: f"deleted {len(asked.items)} files and folders",
    justify=lambda asked: (
        f"Delete: {', '.join(item.path for item in asked.items[:3])}" + (" and more" if len(asked.items) > 3 else "")
    ),
    facts=facts,
    change=planned,
)
def delete_items(call: ToolCall[Deletion]) -> dict[str, JSON]:
    """Delete these files and folders. What is not as it was when it was listed stays.

    Returns the labels of those that were `deleted`, those that were `left` with the reasons, and the bytes `freed`.
    """
    box, items = Box(call.services.workspace()), call.input.items
    chosen = {item.path for item in items}
    kept = {label: now_at(box, path_of(label)) for label in {item.same_as for item in items} - {""} - chosen}
    deleted: list[JSON] = []
    left: dict[str, JSON] = {}
    freed = 0
    for item in items:
        same = kept.get(item.same_as)
        if item.same_as in kept and (same is None or same.mark != item.same_mark):
            left[item.path] = f"It is the only one of its content now: {item.same_as} has changed."
        elif why := _delete(box, item, again=call.attempt > 1):
            left[item.path] = why
        else:
            deleted.append(item.path)
            freed += item.size
    return {"deleted": deleted, "left": left, "freed": freed}


def _delete(box: Box, item: Item, *, again: bool) -> str:
    """Delete this file or folder, and return why that was not done; "" if it was."""
    path = path_of(item.path)
    try:
        if box.kind(path) is None:
            return "" if again else GONE
        seen = now_at(box, path)
        if seen is None or seen.mark != item.mark:
            return CHANGED
        if seen.kind == "folder":
            entries = [*box.walk(path, DEPTH, ENTRIES)]
            for entry in reversed(entries):  # what is in a folder comes after it
                _remove(box, entry.path, entry.kind)
        _remove(box, path, seen.kind)
    except ToolError as error:
        return error.message
    return ""


def _remove(box: Box, path: str, kind: Any) -> None:
    """Remove this file, or this folder, which must be empty. Raises ToolError if that cannot be done."""
    if kind != "folder":
        box.remove(path)
        return
    with box.place(path) as (above, name), tool_errors(path, name, above):
        os.rmdir(name, dir_fd=above)
