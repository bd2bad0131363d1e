"""What writing and editing a file would change: worked out once to be shown, and again to be done."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.engine.errors import ToolError
from agents.engine.outputs.change import Change
from agents.engine.tools.tool import ToolCall
from agents.plugins.files.box import Box, file_parts

WRITE_MOST = 10 * 2**20
"""Bytes of a file that is written or replaced, as many as can be read."""


class Content(BaseModel):
    """What `files.write` takes."""

    path: str = Field(min_length=1, description="A file, relative to the workspace. Folders that are missing are made.")
    content: str = Field(description="All the text of the file.")


class Replacement(BaseModel):
    """What `files.edit` takes."""

    path: str = Field(min_length=1, description="A file, relative to the workspace.")
    old: str = Field(min_length=1, description="The text to replace, exactly as it stands there, blanks and all.")
    new: str = Field(description="What comes in its place.")
    all: bool = Field(False, description="Replace every place where it occurs; else it must occur exactly once.")


def written(call: ToolCall[Content]) -> Change:
    """What `files.write` would change. Raises ToolError where it cannot."""
    path = "/".join(file_parts(call.input.path))
    return _change(path, _text(Box(call.services.workspace()), path), call.input.content)


def edited(call: ToolCall[Replacement]) -> Change:
    """What `files.edit` would change. Raises ToolError where the text to replace is not there, or not clear."""
    asked, path = call.input, "/".join(file_parts(call.input.path))
    before = _text(Box(call.services.workspace()), path)
    if before is None:
        raise ToolError(f"{path!r} does not exist.", code="not_found")
    times = before.count(asked.old)
    if not times:
        raise ToolError(f"{_missing(before, asked.old)} Read {path!r} again and copy the text exactly.", "not_found")
    if times > 1 and not asked.all:
        more = "give more of the text around the one you mean, or set all to true"
        raise ToolError(f"The text to replace occurs {times} times in {path!r}: {more}.", code="not_unique")
    if len(before) + times * (len(asked.new) - len(asked.old)) > WRITE_MOST:
        raise _too_large()  # told before it is made: many small places make gigabytes
    return _change(path, before, before.replace(asked.old, asked.new))


def write_facts(call: ToolCall[Content]) -> list[str]:
    """What the card says of a call of `files.write`: the diff shows the rest."""
    path = "/".join(file_parts(call.input.path))
    there = Box(call.services.workspace()).kind(path)
    return [f"Replaces {path}." if there else f"Makes {path}, a new file."]


def edit_facts(call: ToolCall[Replacement]) -> list[str]:
    """What the card says of a call of `files.edit`: which file, and how often."""
    change = call.change or edited(call)
    times = (change.before or "").count(call.input.old)
    return [f"Changes {change.path} in {times} places." if times > 1 else f"Changes {change.path} in one place."]


def keep(call: ToolCall[Content] | ToolCall[Replacement], change: Change) -> str:
    """Make the change, if the file still is what it begins from. Returns what was done, for the model."""
    box = Box(call.services.workspace())
    if _text(box, change.path) != change.before:
        raise ToolError(f"{change.path!r} changed meanwhile: read it again.", code="changed_since")
    content = change.after.encode()
    box.write(change.path, content)
    lines = change.after.count("\n") + (not change.after.endswith("\n") and bool(change.after))
    did = "Made" if change.before is None else "Wrote"
    return f"{did} {change.path}: {_counted(lines, 'line')}, {_counted(len(content), 'byte')}."


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _text(box: Box, path: str) -> str | None:
    """The text that stands at `path`, exactly; None where nothing does. Raises ToolError for what is no text."""
    if box.kind(path) is None:
        return None
    content = box.read(path, WRITE_MOST)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ToolError(f"{path!r} is not UTF-8 text: it can be neither edited nor replaced.", code="binary")
    return text


def _change(path: str, before: str | None, after: str) -> Change:
    """The change, of texts that a file can hold and people can read. Raises ToolError for others, and for no change."""
    if "\0" in after:
        raise ToolError("The text has a NUL character, which no text file holds.", code="binary")
    if len(after.encode()) > WRITE_MOST:
        raise _too_large()
    if before == after:
        raise ToolError(f"{path!r} has exactly this text already.", code="unchanged")
    return Change(path=path, before=before, after=after)


def _too_large() -> ToolError:
    return ToolError(f"That is too much for one file: at most {WRITE_MOST:,} bytes are written.", code="too_large")


def _missing(before: str, old: str) -> str:
    """Why a text is not found, as far as that can be told."""
    if "\r\n" in before and old.replace("\r\n", "\n") in before.replace("\r\n", "\n"):
        return "The text to replace is there, but the lines of this file end in \\r\\n."
    if " ".join(old.split()) in " ".join(before.split()):
        return "The text to replace is there, but with other blanks or line breaks."
    return "The text to replace does not occur there."
