"""The tools that find, read and search the documents of a workspace. They read only, and only workflows call them."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from pydantic import BaseModel, Field

from agents.categories import DOCUMENTS
from agents.engine.errors import ToolError
from agents.engine.ledger import JSON
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.engine.unseen import unseen_at
from agents.plugins.files.box import Box, file_parts
from agents.plugins.files.searching import Search, compile_pattern
from agents.plugins.files.status import printable
from agents.plugins.files.tools import READ_MOST
from workflows.shipped.paths import in_workspace, is_apart

DEPTH, ENTRIES = 10, 5_000
"""Levels of folders, and entries of each folder, that are looked through."""
FOUND_MOST = 1_000
"""Files that are listed at most."""
TEXT_MOST = 60_000
"""Characters of a file that are read: about 15,000 tokens."""
LINES_MOST = 40
"""Lines that one search finds at most."""


class Patterns(BaseModel):
    """The input of `documents.find`."""

    patterns: list[str] = Field(min_length=1, description="Paths, folders, or globs.")


class Excerpt(BaseModel):
    """The input of `documents.read`. Lines count from 1; `last` 0 is the end of the file."""

    path: str = Field(min_length=1, description="A file, relative to the workspace.")
    first: int = Field(1, ge=1, description="The first line.")
    last: int = Field(0, ge=0, description="The last line.")
    most: int = Field(TEXT_MOST, ge=1, le=TEXT_MOST, description="Characters that are read.")


class Words(BaseModel):
    """The input of `documents.search`."""

    words: str = Field(min_length=1, max_length=200, description="The text to look for, in any case.")
    folder: str = Field(".", description="The folder to search, relative to the workspace.")
    without: list[str] = Field([], description="Files that are no documents here.")


@tool(
    "documents.find",
    risk=Risk.READ,
    offered=False,
    category=DOCUMENTS,
    title="Find documents",
    says=lambda asked: f"looked for {', '.join(asked.patterns)}",
)
def find_documents(call: ToolCall[Patterns]) -> dict[str, JSON]:
    """Find the files that these paths, folders and globs name: `files`, by path, and `left_out` with the reasons.

    What is there by this very name, such as `notes [old]`, goes before a glob. A glob without a slash is matched with
    the names of files. Raises ToolError for a path that names nothing.
    """
    box, found, left_out = Box(call.services.workspace()), set[str](), dict[str, JSON]()
    for pattern in call.input.patterns:
        for path in _named(box, pattern.strip()):
            if not can_be_shown(path):
                left_out[printable(path)] = "Its name has invisible characters: rename it first."
            elif len(found) < FOUND_MOST:
                found.add(path)
    return {"files": sorted(found), "left_out": left_out}


def can_be_shown(path: str) -> bool:
    """Whether people and models see of this path all that is in it."""
    return path.isprintable() and next(unseen_at(path), None) is None


def _named(box: Box, pattern: str) -> Iterator[str]:
    """Yield the files that this pattern names. Raises ToolError if it is a path, and nothing readable is there."""
    is_glob = any(each in pattern for each in "*?[")
    try:
        path = _checked(pattern)
        kind = box.kind(path)
    except ToolError:
        if not is_glob:
            raise
        path, kind = pattern, None
    if kind == "folder":
        yield from _files(box, path)
    elif kind is None and is_glob:
        for each in _files(box, "."):
            if fnmatchcase(each if "/" in pattern else each.rpartition("/")[2], pattern):
                yield each
    elif kind is None:
        raise ToolError(f"There is no {pattern!r} in this workspace.", "not_found")
    else:
        with box.file(path):  # it says why, if it is a link or a pipe
            yield "/".join(file_parts(path))


def _checked(path: str) -> str:
    try:
        return in_workspace(path)
    except ValueError as error:
        raise ToolError(str(error), "bad_path") from error


def _files(box: Box, folder: str) -> Iterator[str]:
    """Yield the files below a folder, without hidden ones and those that programs write."""
    for entry in box.walk(folder, DEPTH, ENTRIES):
        if entry.kind == "file" and not is_apart(entry.path) and not entry.path.rpartition("/")[2].startswith("."):
            yield entry.path


@tool(
    "documents.read",
    risk=Risk.READ,
    offered=False,
    category=DOCUMENTS,
    title="Read a document",
    says=lambda asked: f"read {printable(asked.path)}" + (f", from line {asked.first}" if asked.last else ""),
)
def read_document(call: ToolCall[Excerpt]) -> dict[str, JSON]:
    """Read the text of a file, or some of its lines. `whole` says whether nothing of it was cut.

    Raises ToolError for what is no text, cannot be read, or has no text.
    """
    asked = call.input
    content = Box(call.services.workspace()).read(asked.path, READ_MOST)
    if b"\0" in content:
        raise ToolError(f"{asked.path!r} is not text.", "binary")
    lines = [line.removesuffix("\r") for line in content.decode("utf-8-sig", "replace").split("\n")]
    if not lines[-1]:
        lines.pop()  # nothing follows the last newline
    chosen = "\n".join(lines[asked.first - 1 : asked.last or len(lines)])
    if not chosen.strip():
        raise ToolError(f"{asked.path!r} has no text.", "empty")
    return {"path": asked.path, "first": asked.first, "text": chosen[: asked.most], "whole": len(chosen) <= asked.most}


@tool(
    "documents.search",
    risk=Risk.READ,
    offered=False,
    category=DOCUMENTS,
    time_limit=60,
    title="Search the documents",
    says=lambda asked: f"searched the documents for {asked.words}",
)
def search_documents(call: ToolCall[Words]) -> dict[str, JSON]:
    """Find the lines that have these words: `found`, each with its path, line and text; `more`: there are others."""
    asked = call.input
    without = set(asked.without)

    def is_document(path: str) -> bool:
        return path not in without and not is_apart(path) and can_be_shown(path)

    pattern = compile_pattern(asked.words, regex=False, ignore_case=True)
    search = Search(Box(call.services.workspace()), pattern, "", LINES_MOST, is_document)
    search.run(_checked(asked.folder))
    return {"found": [line._asdict() for line in search.found], "more": bool(search.ended)}
