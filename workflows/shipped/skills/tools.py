"""The tools that import skills: one reads the folders of a workspace, one adds what a person has seen whole."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from agents.categories import SKILLS
from agents.engine.errors import ToolError
from agents.engine.ledger import JSON
from agents.engine.outputs.change import CHANGE_MOST, LINES_MOST, Change
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.files.box import Box
from agents.plugins.files.status import printable
from workflows.shipped.paths import in_workspace

if TYPE_CHECKING:  # tools are declared without tables
    from agents.models import Skill

FILE = "SKILL.md"
SKILLS_MOST = 50
"""Skills of one import: more than anybody reads on one card."""
ENTRIES = 1_000
"""Entries of the folder that are looked at."""
ADD, CHANGE = "agents.add_skill", "agents.change_skill"
"""The permissions that adding a skill takes, and replacing one."""
MAY_NOT_CHANGE = "A skill of this name exists already, and you may not change skills."

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class SkillText(BaseModel):
    """What a skill says: when to use it, its text, and the tools that are offered only while it is active."""

    description: str = Field(min_length=1, max_length=1_024)
    body: str = Field(min_length=1, max_length=100_000)
    tools: list[ToolName] = []


class NewSkill(SkillText):
    """A skill to add. `replaces`: what is called so already, as it was when somebody looked; `off`: it is disabled."""

    name: Name
    replaces: SkillText | None = None
    off: bool = False

    @property
    def said(self) -> SkillText:
        """What it says, without its name."""
        return SkillText(description=self.description, body=self.body, tools=self.tools)


class Skills(BaseModel):
    """The input of `skills.add`."""

    skills: list[NewSkill] = Field(min_length=1, max_length=SKILLS_MOST)


class SkillFolder(BaseModel):
    """The input of `skills.read`. `replace`: whether skills that exist already may be replaced."""

    folder: str = Field(min_length=1, description="A folder of the workspace.")
    replace: bool = False


@tool(
    "skills.read",
    risk=Risk.READ,
    offered=False,
    category=SKILLS,
    title="Read skills",
    says=lambda asked: f"read the skills in {asked.folder}",
)
async def read_skills(call: ToolCall[SkillFolder]) -> dict[str, JSON]:
    """Read `SKILL.md` in this folder, and in the folders directly below it.

    `skills` are those to add, `refused` says by path why others are none, `missing` are tools that they name and the
    site does not have. Raises ToolError if there is no such file, or there are too many.
    """
    from agents.skills import missing_tools

    box, asked = Box(call.services.workspace()), call.input
    paths = _files(box, in_workspace(asked.folder))
    known, off, may_change = await call.services.look_up(_known, call.user)
    skills: dict[str, NewSkill] = {}
    places: dict[str, str] = {}
    refused: dict[str, JSON] = {}
    for path in paths:
        shown = printable(path)
        try:
            skill = _read(box, path)
        except _Refused as error:
            refused[shown] = _sentence(str(error))
            continue
        there, other = known.get(skill.name), places.setdefault(skill.name, shown)
        if other != shown:
            refused[shown] = f"{other} already has the name {skill.name!r}: rename one of the two."
        elif there and (why := _why_not(skill, there, replace=asked.replace, may=may_change)):
            refused[shown] = why
        else:
            skills[skill.name] = skill.model_copy(update={"replaces": there, "off": skill.name in off})
    named = {name for skill in skills.values() for name in skill.tools}
    added: list[JSON] = [skill.model_dump(mode="json") for skill in skills.values()]
    return {"skills": added, "refused": refused, "missing": list(missing_tools(sorted(named)))}


class _Refused(Exception):
    """Why a file is not imported."""


def _files(box: Box, folder: str) -> list[str]:
    """Return the paths of the files to import. Raises ToolError if there are none, or too many."""
    if box.kind(folder) is None:
        raise ToolError(f"There is no folder {folder!r} in this workspace.", "not_found")
    below = sorted(entry.path for entry in box.walk(folder, 1, ENTRIES) if entry.kind in ("folder", "link"))
    paths = [f"{place}/{FILE}".removeprefix("./") for place in (folder, *below)]
    there = [path for path in paths if _kind(box, path) is not None]
    if not there:
        raise ToolError(f"There is no {FILE} in {folder!r}, or in a folder directly below it.", "not_found")
    if len(there) > SKILLS_MOST:
        why = f"There are {len(there)} skills in {folder!r}, and at most {SKILLS_MOST} are imported at once."
        raise ToolError(f"{why} Move some of them to another folder.", "too_many")
    return there


def _kind(box: Box, path: str) -> str | None:
    try:
        return box.kind(path)
    except ToolError as error:
        if error.code == "link":
            return "link"  # a folder that is a link: reading it says so
        raise


def _read(box: Box, path: str) -> NewSkill:
    from agents.markdown_files import FILE_MOST, BadFile
    from agents.skills import parse_skill

    try:
        skill = parse_skill(box.read(path, FILE_MOST))
        return NewSkill(name=skill.name, **_said(skill).model_dump())
    except ValidationError as error:
        raise _Refused("the names of its tools must have 1 to 100 characters.") from error
    except (BadFile, ToolError) as error:
        raise _Refused(str(error)) from error


def _said(skill: Skill) -> SkillText:
    return SkillText.model_construct(description=skill.description, body=skill.body, tools=skill.tools)


def _known(user: int) -> tuple[dict[str, SkillText], set[str], bool]:
    """Return what the skills of the site say by name, which are disabled, and whether this person may change them."""
    from agents.models import Skill

    skills = list(Skill.objects.all())
    off = {skill.name for skill in skills if not skill.enabled}
    return {skill.name: _said(skill) for skill in skills}, off, _may(user, CHANGE)


def _may(user: int, permission: str) -> bool:
    from django.contrib.auth import get_user_model

    found: Any = get_user_model()._default_manager.filter(pk=user, is_active=True).first()
    return found is not None and bool(found.has_perm(permission))


def _why_not(skill: NewSkill, there: SkillText, *, replace: bool, may: bool) -> str:
    """Return why a skill does not replace the one that is there; "" if it does."""
    if there == skill.said:
        return "The site already has exactly this skill."
    if not replace:
        return f"A skill called {skill.name!r} exists already: choose “Replace existing skills” to replace it."
    return "" if may else MAY_NOT_CHANGE


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


def planned(call: ToolCall[Skills]) -> Change:
    """Return the whole text of all these skills, as agents will read it. Raises ToolError if it is too long."""
    named = [skill.name for skill in call.input.skills]
    if twice := sorted({name for name in named if named.count(name) > 1}):
        raise ToolError(f"Two of these skills are called {twice[0]!r}: rename one of them.", "invalid_input")
    change = Change(path="Skills", before="", after="\n".join(map(_shown, call.input.skills)))
    if change.too_large:
        most = f"up to {CHANGE_MOST:,} characters and {LINES_MOST:,} lines can be shown at once"
        raise ToolError(f"These skills are too long: {most}. Import fewer of them.", "too_large")
    return change


def _shown(skill: NewSkill) -> str:
    head = f"===== {skill.name}, {'which is replaced' if skill.replaces else 'which is new'} ====="
    return "\n".join([head, _text(skill), *_difference(skill)])


def _text(skill: SkillText) -> str:
    tools = f"tools: {', '.join(skill.tools)}\n" if skill.tools else ""
    return f"description: {skill.description}\n{tools}\n{skill.body}\n"


def _difference(skill: NewSkill) -> list[str]:
    """Return how a skill differs from the one that it replaces, as a unified diff."""
    if skill.replaces is None:
        return []
    before, after = _text(skill.replaces).split("\n"), _text(skill).split("\n")
    lines = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    return [f"===== {skill.name}, what changes =====", *lines, ""]


def facts(call: ToolCall[Skills]) -> list[str]:
    """Return the facts on the card: which are added and replaced, and what that does to agents and to tools."""
    skills = call.input.skills
    added = [skill.name for skill in skills if skill.replaces is None]
    replaced = [skill.name for skill in skills if skill.replaces is not None]
    told = [f"Adds {', '.join(added)}."] if added else []
    told += [f"Replaces {', '.join(replaced)}. What it says now is lost."] if replaced else []
    told.append("A skill is an instruction: every agent of this site may follow it, for everybody.")
    told += [
        f"{skill.name} is disabled on this site, and stays so: no agent follows it." for skill in skills if skill.off
    ]
    told += [
        f"While {skill.name} is not active, agents are not offered {', '.join(skill.tools)}."
        for skill in skills
        if skill.tools
    ]
    return told


# HIGH, because what it writes tells agents what to do, in the conversations of everybody. It may run again after a
# crash: what it has added by then is as it should be.
@tool(
    "skills.add",
    risk=Risk.HIGH,
    idempotent=True,
    offered=False,
    category=SKILLS,
    title="Add skills",
    says=lambda asked: f"added {', '.join(skill.name for skill in asked.skills)}",
    justify=lambda asked: f"Add: {', '.join(skill.name for skill in asked.skills)}",
    facts=facts,
    change=planned,
    undoable="Skills can be changed and disabled in the admin.",
)
async def add_skills(call: ToolCall[Skills]) -> dict[str, JSON]:
    """Add these skills to the site. One that was changed since it was read is left as it is.

    Returns their names as `added`, `replaced`, and `left_out` with the reasons. Those `disabled` stay so.
    """
    done: dict[str, JSON] = await call.services.look_up(_add, call.user, call.input.skills)
    return done


def _add(user: int, skills: list[NewSkill]) -> dict[str, JSON]:
    if not _may(user, ADD):
        raise ToolError("You may not add skills any more, so nothing was added.", "not_permitted")
    may_change = _may(user, CHANGE)
    added: list[JSON] = []
    replaced: list[JSON] = []
    left_out: dict[str, JSON] = {}
    for skill in skills:
        if why := _save(skill, may_change):
            left_out[skill.name] = why
        else:
            (added if skill.replaces is None else replaced).append(skill.name)
    disabled: list[JSON] = [*_disabled(skill.name for skill in skills if skill.name not in left_out)]
    return {"added": added, "replaced": replaced, "left_out": left_out, "disabled": disabled}


def _disabled(names: Iterable[str]) -> list[str]:
    from agents.models import Skill

    return sorted(Skill.objects.filter(name__in=[*names], enabled=False).values_list("name", flat=True))


def _save(skill: NewSkill, may_change: bool) -> str:
    """Save a skill, and return why it was not; "" if it was, or is there just so."""
    from django.db import transaction

    from agents.models import Skill

    fields = skill.said.model_dump()
    with transaction.atomic():
        there = Skill.objects.select_for_update().filter(name=skill.name).first()
        if there and _said(there) == skill.said:
            return ""
        if (there and _said(there)) != skill.replaces:
            return "It has been changed on the site since it was shown, and stays as it is."
        if there is None:
            Skill.objects.create(name=skill.name, **fields)
        elif not may_change:
            return MAY_NOT_CHANGE
        else:
            Skill.objects.filter(pk=there.pk).update(**fields)
    return ""
