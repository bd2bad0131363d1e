"""What an agent may do with the files of its workspace: list, read and search; write and edit, if a person agrees."""

from __future__ import annotations

from itertools import islice

from pydantic import BaseModel, Field

from agents.engine.errors import ToolError
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.files.box import Box, Entry, parts
from agents.plugins.files.searching import Search, compiled
from agents.plugins.files.status import printable
from agents.plugins.files.writing import Content, Replacement, edit_facts, edited, keep, write_facts, written

LIST_MOST = 300
"""Entries in one listing: with paths of 40 characters about 12,000 of the 16,000 characters that a model is shown."""
READ_MOST = 10 * 2**20
"""Bytes of a file that can be read: beyond it, no reader of text wants all of it in memory."""
TEXT_MOST = 15_000
"""Characters of one answer: with the line that says how to go on, all of them reach the model, who is shown 16,000."""


FOUND_MOST = 100
"""Lines of one search, of at most 200 characters and a path: together about what a model is shown of one result."""


class Folder(BaseModel):
    """What `files.list` takes."""

    path: str = Field(".", description="A folder, relative to the workspace.")
    depth: int = Field(2, ge=1, le=5, description="How many levels of folders to show.")


class Excerpt(BaseModel):
    """What `files.read` takes."""

    path: str = Field(min_length=1, description="A file, relative to the workspace.")
    offset: int = Field(1, ge=1, description="The first line to read; lines count from 1.")
    limit: int = Field(500, ge=1, le=10_000, description="How many lines to read.")


class Wanted(BaseModel):
    """What `files.search` takes."""

    pattern: str = Field(min_length=1, max_length=1000, description="The text to look for.")
    path: str = Field(".", description="A folder to look in, or one file, relative to the workspace.")
    regex: bool = Field(False, description="The pattern is a regular expression (RE2: no look-around).")
    ignore_case: bool = Field(False, description="Find capital and small letters alike.")
    glob: str = Field("", max_length=200, description="Only files whose name fits, e.g. *.py; with a slash, the path.")


@tool("files.list", risk=Risk.READ, category="files", title="List files", says=lambda asked: _listed(asked.path))
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


@tool(
    "files.search",
    risk=Risk.READ,
    category="files",
    time_limit=60,
    title="Search files",
    says=lambda asked: f"searched for {asked.pattern}",
)
def search_files(call: ToolCall[Wanted]) -> str:
    """Find lines in the files of the workspace: "path:line: text". Files that are no text are left out."""
    asked = call.input
    pattern = compiled(asked.pattern, regex=asked.regex, ignore_case=asked.ignore_case)
    search = Search(Box(call.services.workspace()), pattern, asked.glob, FOUND_MOST)
    search.run("/".join(parts(asked.path)) or ".")
    remarks = [search.ended] if search.ended else []
    if left_out := sorted(search.left_out):
        named = ", ".join(map(printable, left_out[:5])) + (", ..." if len(left_out) > 5 else "")
        remarks.append(f"Left out, or in part, because too large: {named}.")
    return "\n".join([*(search.found or ["[Nothing found.]"]), *(f"[{remark}]" for remark in remarks)])


@tool(
    "files.write",
    risk=Risk.WRITE,
    category="files",
    title="Write a file",
    says=lambda asked: f"wrote {asked.path}",
    justify=lambda asked: f"Write: {asked.path}",
    facts=write_facts,
    change=written,
    preview="diff",
)
def write_file(call: ToolCall[Content]) -> str:
    """Write a text file in the workspace: a new one, or all of one that is there. To change a part, edit it instead."""
    return keep(call, call.change or written(call))


@tool(
    "files.edit",
    risk=Risk.WRITE,
    category="files",
    title="Edit a file",
    says=lambda asked: f"edited {asked.path}",
    justify=lambda asked: f"Edit: {asked.path}",
    facts=edit_facts,
    change=edited,
    preview="diff",
)
def edit_file(call: ToolCall[Replacement]) -> str:
    """Replace text in a file of the workspace. Read it first: the old text must stand there exactly so, and once.

    Edit one place at a time, or give all the lines around several; a second edit of one file waits for the first.
    """
    return keep(call, call.change or edited(call))


def _listed(path: str) -> str:
    return f"listed {path}" if parts(path) else "listed the workspace"


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
    name = printable(entry.path)
    match entry.kind:
        case "folder":
            return f"{name}/"
        case "file":
            return f"{name}  {_size(entry.size)}"
        case "link":
            return f"{name}  (a link, not followed)"
    return f"{name}  (a pipe, socket or device)"


def _size(size: int) -> str:
    """A number of bytes as people read it: 340 B, 1.2 kB, 4,294.9 MB."""
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"
