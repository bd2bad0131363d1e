"""The tools for files of the workspace: list, read and search; write and edit, if a person approves."""

from __future__ import annotations

from itertools import islice

from pydantic import BaseModel, Field

from agents.categories import FILES
from agents.engine.errors import ToolError
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.files import writing
from agents.plugins.files.box import Box, Entry, parts
from agents.plugins.files.searching import Search, compile_pattern
from agents.plugins.files.status import printable
from agents.plugins.files.writing import Content, Replacement, edit_facts, planned_edit, planned_write, write_facts

LIST_MOST = 300
"""Entries in one listing: with paths of 40 characters, about 12,000 of the 16,000 characters that a model is shown."""
READ_MOST = 10 * 2**20
"""The largest file that can be read, in bytes: a larger one should not be in memory as a whole."""
TEXT_MOST = 15_000
"""Characters of one answer: with the line that says how to go on, all of them are among the 16,000 shown to a model."""
FOUND_MOST = 100
"""Lines of one search, of at most 200 characters and a path: about as much as a model is shown of one result."""
KEPT = "Replaced text stays on record with this card, unless it is too large to be shown."
"""What the card says about undoing a write or an edit."""


class Folder(BaseModel):
    """The input of `files.list`."""

    path: str = Field(".", description="A folder, relative to the workspace.")
    depth: int = Field(2, ge=1, le=5, description="How many levels of folders to show.")


class Excerpt(BaseModel):
    """The input of `files.read`."""

    path: str = Field(min_length=1, description="A file, relative to the workspace.")
    offset: int = Field(1, ge=1, description="The first line to read, counting from 1.")
    limit: int = Field(500, ge=1, le=10_000, description="How many lines to read.")


class SearchRequest(BaseModel):
    """The input of `files.search`."""

    pattern: str = Field(min_length=1, max_length=1000, description="The text to look for.")
    path: str = Field(".", description="A folder to search, or one file, relative to the workspace.")
    regex: bool = Field(False, description="Whether the pattern is a regular expression (RE2: no look-around).")
    ignore_case: bool = Field(False, description="Ignore the difference between upper and lower case.")
    glob: str = Field(
        "",
        max_length=200,
        description="Search only files whose name matches, e.g. *.py. A glob with a slash is matched with the path.",
    )


@tool("files.list", risk=Risk.READ, category=FILES, title="List files", says=lambda asked: _list_summary(asked.path))
def list_files(call: ToolCall[Folder]) -> str:
    """List the files of the workspace, with their sizes. Folders end in a slash; links are shown, never followed."""
    asked = call.input
    found = Box(call.services.workspace()).walk(asked.path, asked.depth, LIST_MOST + 1)
    entries = list(islice(found, LIST_MOST + 1))
    lines = [_line(entry) for entry in entries[:LIST_MOST]]
    if len(entries) > LIST_MOST:
        lines.append(f"[Only the first {LIST_MOST} entries: list one of the folders, or use less depth, to see more.]")
    return "\n".join(lines) or "[The folder is empty.]"


@tool(
    "files.read",
    risk=Risk.READ,
    category=FILES,
    title="Read a file",
    says=lambda asked: f"read {asked.path}",
    language=lambda asked: asked.path,
)
def read_file(call: ToolCall[Excerpt]) -> str:
    """Read the text of a file in the workspace. If text is left out, a last line in brackets says how to read on."""
    asked = call.input
    content = Box(call.services.workspace()).read(asked.path, READ_MOST)
    if b"\0" in content:
        raise ToolError(f"{asked.path!r} is not text: {_size(len(content))} of binary data.", code="binary")
    lines = content.decode("utf-8-sig", "replace").split("\n")
    if not lines[-1]:
        lines.pop()  # nothing follows the last newline
    shown, remarks = _excerpt(lines, asked.offset, asked.limit)
    if not _is_utf8(content):
        remarks.append("Not UTF-8: \N{REPLACEMENT CHARACTER} stands for bytes that are not text.")
    return "\n".join([*shown, *(f"[{remark}]" for remark in remarks)])


@tool(
    "files.search",
    risk=Risk.READ,
    category=FILES,
    time_limit=60,
    title="Search files",
    says=lambda asked: f"searched for {asked.pattern}",
)
def search_files(call: ToolCall[SearchRequest]) -> str:
    """Find lines in the files of the workspace: "path:line: text". Binary files are skipped."""
    asked = call.input
    pattern = compile_pattern(asked.pattern, regex=asked.regex, ignore_case=asked.ignore_case)
    search = Search(Box(call.services.workspace()), pattern, asked.glob, FOUND_MOST)
    search.run("/".join(parts(asked.path)) or ".")
    remarks = [search.ended] if search.ended else []
    if skipped := sorted(search.skipped):
        named = ", ".join(map(printable, skipped[:5])) + (", ..." if len(skipped) > 5 else "")
        remarks.append(f"Skipped, in whole or in part, because too large: {named}.")
    lines = [f"{printable(path)}:{number}: {text}" for path, number, text in search.found]
    return "\n".join([*(lines or ["[Nothing found.]"]), *(f"[{remark}]" for remark in remarks)])


@tool(
    "files.write",
    risk=Risk.WRITE,
    category=FILES,
    title="Write a file",
    says=lambda asked: f"wrote {asked.path}",
    justify=lambda asked: f"Write: {asked.path}",
    facts=write_facts,
    change=planned_write,
    undoable=KEPT,
)
def write_file(call: ToolCall[Content]) -> str:
    """Write a text file in the workspace: a new one, or all of an existing one. To change a part, edit it."""
    return writing.apply(call, call.change or planned_write(call))


@tool(
    "files.edit",
    risk=Risk.WRITE,
    category=FILES,
    title="Edit a file",
    says=lambda asked: f"edited {asked.path}",
    justify=lambda asked: f"Edit: {asked.path}",
    facts=edit_facts,
    change=planned_edit,
    undoable=KEPT,
)
def edit_file(call: ToolCall[Replacement]) -> str:
    """Replace text in a file of the workspace. Read it first: the old text must occur in it exactly, and only once.

    Edit one place at a time, or replace all the lines around several. A second edit of a file waits for the first.
    """
    return writing.apply(call, call.change or planned_edit(call))


def _list_summary(path: str) -> str:
    return f"listed {path}" if parts(path) else "listed the workspace"


def _excerpt(lines: list[str], offset: int, limit: int) -> tuple[list[str], list[str]]:
    """Return the lines from `offset` on that fit into one answer, and remarks about the others."""
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
    more = f"; read on with offset {last + 1}" if last < len(lines) else ""
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
    """Return a number of bytes for people: 340 B, 1.2 kB, 4,294.9 MB."""
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"
