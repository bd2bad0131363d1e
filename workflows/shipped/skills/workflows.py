"""Import skills from a folder of the workspace: one card shows the whole text of each, and then they are added."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.categories import SKILLS
from agents.engine.errors import ToolError
from workflows.definition import workflow
from workflows.flow import Flow
from workflows.shipped.paths import Folder
from workflows.shipped.rejected import words_of
from workflows.shipped.skills.tools import ADD


class Import(BaseModel):
    """Where the skills are."""

    folder: Folder = Field(
        "skills",
        description="The folder that has a SKILL.md, or folders with one each directly below it.",
    )
    replace: bool = Field(
        False,
        title="Replace existing skills",
        description="Whether a skill of the same name may be replaced. If not, it stays, and the result says so.",
    )


class Imported(BaseModel):
    """Skills that were imported, by name, and what was not, with the reason for each."""

    done: str
    added: list[str] = []
    replaced: list[str] = []
    left_out: list[str] = []


@workflow("skills.import", title="Import skills", category=SKILLS, permission=ADD, workspace="required")
async def import_skills(flow: Flow[Import]) -> Imported:
    """Adds skills from a folder of a workspace to the site. You see the whole text of each before it is added."""
    flow.progress(0, 2, f"Reading the skills in {flow.input.folder}")
    found = await flow.tool("skills.read", folder=flow.input.folder, replace=flow.input.replace)
    left_out = [f"{path}: {why}" for path, why in found["refused"].items()]
    if not found["skills"]:
        return Imported(done="Nothing was imported: see what was left out.", left_out=left_out)
    flow.progress(1, 2, "The skills are waiting for approval")
    try:
        added = await flow.tool("skills.add", skills=found["skills"])
    except ToolError as error:
        return Imported(done=f"Nothing was imported: {words_of(error)}", left_out=left_out)
    flow.progress(2, 2, "Done")
    left_out += [f"{name}: {why}" for name, why in added["left_out"].items()]
    words = [f"added {', '.join(added['added'])}"] if added["added"] else []
    words += [f"replaced {', '.join(added['replaced'])}"] if added["replaced"] else []
    done = f"{' and '.join(words)}." if words else "Nothing was imported."
    done = f"{done[:1].upper()}{done[1:]}"
    if added["disabled"]:
        done += f" Disabled on this site, as before: {', '.join(added['disabled'])}."
    if found["missing"]:
        done += f" Named in skills, and not installed: {', '.join(found['missing'])}."
    return Imported(done=done, added=added["added"], replaced=added["replaced"], left_out=left_out)
