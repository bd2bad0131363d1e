"""What an agent may read: the listing of its workspace, and the text of its files."""

from __future__ import annotations

from itertools import islice

from pydantic import BaseModel, Field

from agents.engine.errors import ToolError
from agents.engine.tools import Risk, ToolCall, tool
from agents.plugins.files.box import Box, Entry

LIST_MOST = 300
"""Entries in one listing: with paths of 40 characters about 12,000 of the 16,000 characters that a model is shown."""
READ_MOST = 10 * 2**20
"""Bytes of a file that can be read: beyond it, no reader of text wants all of it in memory."""
TEXT_MOST = 15_000
"""Characters of one answer: with the line that says how to go on, all of them reach the model, who is shown 16,000."""


class Folder(BaseModel):
    """What `files.list` takes."""

    path: str = Field(".", description="A folder, relative to the workspace.")
    depth: int = Field(2, ge=1, le=5, description="How many levels of folders to show.")


class Excerpt(BaseModel):
    """What `files.read` takes."""

    path: str = Field(min_length=1, description="A file, relative to the workspace.")
    offset: int = Field(1, ge=1, description="The first line to read; lines count from 1.")
    limit: int = Field(500, ge=1, le=10_000, description="How many lines to read.")


@tool("files.list", risk=Risk.READ, category="files", title="List files", says=lambda asked: f"listed {asked.path}")
def list_files(call: ToolCall[Folder]) -> str:
    """List the files of the workspace, with their sizes. Folders end in a slash; links are shown, never followed."""
    asked = call.input
    found = Box(call.services.workspace()).walk(asked.path, asked.depth, LIST_MOST + 1)
    entries = list(islice(found, LIST_MOST + 1))
    lines = [_line(entry) for entry in entries[:LIST_MOST]]
    if len(entries) > LIST_MOST:
        lines.append(f"[The first {LIST_MOST} entries; list one of the folders, or less depth, to see more.]")
    return "\n".join(lines) or "[The folder is empty.]"


@tool("files.read", risk=Risk.READ, category="files", title="Read a file", says=lambda asked: f"read {asked.path}")
def read_file(call: ToolCall[Excerpt]) -> str:
    """Read the text of a file in the workspace. A last line in brackets says what was left out and how to go on."""
    asked = call.input
    content = Box(call.services.workspace()).read(asked.path, READ_MOST)
    if b"\0" in content:
        raise ToolError(f"{asked.path!r} is not text: {_size(len(content))} of binary data.", code="binary")
    lines = content.decode("utf-8-sig", "replace").split("\n")
    if not lines[-1]:
        lines.pop()  # what follows the last newline is no line
    shown, remarks = _excerpt(lines, asked.offset, asked.limit)
    if not _is_utf8(content):
        remarks.append("Not UTF-8: \N{REPLACEMENT CHARACTER} stands for bytes that are no text.")
    return "\n".join([*shown, *(f"[{remark}]" for remark in remarks)])


def _excerpt(lines: list[str], offset: int, limit: int) -> tuple[list[str], list[str]]:
    """The lines from `offset` on that fit into one answer, and what to say about the others."""
    if offset > len(lines):
        return [], [f"The file has {len(lines)} lines."]
    shown: list[str] = []
    room = TEXT_MOST
    for line in lines[offset - 1 : offset - 1 + limit]:
        if len(line) >= room:
            break
        shown.append(line)
        room -= len(line) + 1
    if not shown:
        long = lines[offset - 1]
        return [long[:TEXT_MOST]], [f"Line {offset} of {len(lines)} is cut: it has {len(long):,} characters."]
    last = offset - 1 + len(shown)
    if offset == 1 and last == len(lines):
        return shown, []
    more = f"; go on with offset {last + 1}" if last < len(lines) else ""
    return shown, [f"Lines {offset} to {last} of {len(lines)}{more}."]


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _line(entry: Entry) -> str:
    name = _visible(entry.path)
    match entry.kind:
        case "folder":
            return f"{name}/"
        case "file":
            return f"{name}  {_size(entry.size)}"
        case "link":
            return f"{name}  (a link, not followed)"
    return f"{name}  (a pipe, socket or device)"


def _visible(name: str) -> str:
    """A name on one line: what cannot be printed is shown as its escape, so that no name can pass for two entries."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def _size(size: int) -> str:
    """A number of bytes as people read it: 340 B, 1.2 kB, 4,294.9 MB."""
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"
