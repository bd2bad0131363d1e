"""The change that writing or editing a file would make: computed once to be shown, and again to be made."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agents.engine.errors import ToolError
from agents.engine.interfaces.services import Space
from agents.engine.outputs.change import Change
from agents.engine.tools.tool import ToolCall
from agents.plugins.files.box import Box, file_parts
from agents.plugins.files.usage import usage_of

WRITE_MOST = 10 * 2**20
"""The largest file that can be written or replaced, in bytes: as large as can be read."""


class Content(BaseModel):
    """The input of `files.write`."""

    path: str = Field(min_length=1, description="A file, relative to the workspace. Missing folders are created.")
    content: str = Field(description="The full text of the file.")


class Replacement(BaseModel):
    """The input of `files.edit`."""

    path: str = Field(min_length=1, description="A file, relative to the workspace.")
    old: str = Field(min_length=1, description="The text to replace, exactly as in the file, including whitespace.")
    new: str = Field(description="The text to put in its place.")
    all: bool = Field(False, description="Replace every occurrence; otherwise it must occur exactly once.")


def planned_write(call: ToolCall[Content]) -> Change:
    """Return the change that `files.write` would make. Raises ToolError if it cannot be made."""
    path = "/".join(file_parts(call.input.path))
    return _change(path, _text(Box(call.services.workspace()), path), call.input.content)


def planned_edit(call: ToolCall[Replacement]) -> Change:
    """Return the change that `files.edit` would make. Raises ToolError if the old text is missing or ambiguous."""
    asked, path = call.input, "/".join(file_parts(call.input.path))
    before = _text(Box(call.services.workspace()), path)
    if before is None:
        raise ToolError(f"{path!r} does not exist.", code="not_found")
    times = before.count(asked.old)
    if not times:
        raise ToolError(f"{_missing(before, asked.old)} Read {path!r} again and copy the text exactly.", "not_found")
    if times > 1 and not asked.all:
        more = "include more of the text around the one you mean, or set all to true"
        raise ToolError(f"The text to replace occurs {times} times in {path!r}: {more}.", code="not_unique")
    if len(before) + times * (len(asked.new) - len(asked.old)) > WRITE_MOST:
        raise _too_large()  # checked before the text is built: many small replacements can make gigabytes
    return _change(path, before, before.replace(asked.old, asked.new))


def write_facts(call: ToolCall[Content]) -> list[str]:
    """Return the facts on the card of a `files.write` call. The diff shows the rest."""
    path = "/".join(file_parts(call.input.path))
    exists = Box(call.services.workspace()).kind(path)
    return [f"Replaces {path}." if exists else f"Creates {path}, a new file."]


def edit_facts(call: ToolCall[Replacement]) -> list[str]:
    """Return the facts on the card of a `files.edit` call: which file, and in how many places."""
    change = call.change or planned_edit(call)
    times = (change.before or "").count(call.input.old)
    return [f"Changes {change.path} in {times} places." if times > 1 else f"Changes {change.path} in one place."]


def apply(call: ToolCall[Content] | ToolCall[Replacement], change: Change) -> str:
    """Make the change. Returns what was done, for the model. Raises ToolError if the file has changed in between,
    or the workspace would hold more than it may.
    """
    box = Box(call.services.workspace())
    if _text(box, change.path) != change.before:
        raise ToolError(f"{change.path!r} has changed in the meantime: read it again.", code="changed_since")
    content = change.after.encode()
    more = len(content) - len((change.before or "").encode())
    check_space(call.services.space(), box, more, int(change.before is None))
    box.write(change.path, content)
    lines = change.after.count("\n") + (not change.after.endswith("\n") and bool(change.after))
    did = "Created" if change.before is None else "Wrote"
    return f"{did} {change.path}: {_count(lines, 'line')}, {_count(len(content), 'byte')}."


def check_space(space: Space, box: Box, more: int, new: int) -> None:
    """Raise ToolError if the workspace may not grow by so many bytes and new files. It may always shrink."""
    if more <= 0 and not new:
        return
    used = usage_of(box.root)
    tidy = "Remove files that are no longer needed first, for example with a command."
    if used.bytes + more > space.room:
        whose = "the workspace" if space.left is None or space.bytes <= space.left else "all files of this person"
        raise ToolError(f"There is no space left: the limit of {whose} is reached. {tidy}", code="no_space")
    if new and used.files + new > space.files:
        raise ToolError(f"The workspace has {used.files:,} files, which is the limit. {tidy}", code="no_space")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _text(box: Box, path: str) -> str | None:
    """Return the exact text of the file at `path`; None if nothing is there. Raises ToolError if it is not text."""
    if box.kind(path) is None:
        return None
    content = box.read(path, WRITE_MOST)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ToolError(f"{path!r} is not UTF-8 text: it cannot be edited or replaced.", code="binary")
    return text


def _change(path: str, before: str | None, after: str) -> Change:
    """Return the change. Raises ToolError for text that is binary or too large, and if nothing would change."""
    if "\0" in after:
        raise ToolError("The text has a NUL character, which a text file cannot contain.", code="binary")
    if len(after.encode()) > WRITE_MOST:
        raise _too_large()
    if before == after:
        raise ToolError(f"{path!r} already has exactly this text.", code="unchanged")
    return Change(path=path, before=before, after=after)


def _too_large() -> ToolError:
    return ToolError(f"The text is too large: a file can have at most {WRITE_MOST:,} bytes.", code="too_large")


def _missing(before: str, old: str) -> str:
    """Return why the text to replace was not found, as far as that is known."""
    if "\r\n" in before and old.replace("\r\n", "\n") in before.replace("\r\n", "\n"):
        return "The text to replace is there, but the lines of this file end in \\r\\n."
    if " ".join(old.split()) in " ".join(before.split()):
        return "The text to replace is there, but with different whitespace or line breaks."
    return "The text to replace does not occur in the file."
