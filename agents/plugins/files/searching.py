"""File search: searches the workspace line by line, in bounded time whatever the pattern."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

import re2

from agents.engine.errors import ToolError
from agents.plugins.files.box import Box, Entry
from agents.plugins.files.status import printable

FILE_MOST = 10 * 2**20
"""Bytes of a file that is searched; larger files are reported as skipped."""
LINE_SEARCHED_MOST = 1_000_000
"""Characters of a line that is searched: 9 seconds for the slowest pattern. Longer lines are reported as skipped."""
FILES_MOST = 20_000
"""Files that one search opens."""
SECONDS_MOST = 10.0
"""Time that one search takes; the result says that it was stopped."""
MEMORY_MOST = 8 * 2**20
"""Bytes that a pattern may take: re2's own default, made explicit."""
DEPTH = 40
ENTRIES = 10_000
"""Levels of folders, and entries of each folder, that are searched."""
LINE_MOST = 200
"""Characters of a line that are shown, around the match."""


class Found(NamedTuple):
    """A line that was found: its file, its number from 1, and its text, cut around the match if it is long."""

    path: str
    line: int
    text: str


@dataclass
class Search:
    """One search: the lines found so far, the files skipped and why it ended early. `most` limits the results.

    `among`: which files are searched, by path, besides what the glob says.
    """

    box: Box
    pattern: re2.Pattern[str]
    glob: str
    most: int
    among: Callable[[str], bool] = lambda path: True
    found: list[Found] = field(default_factory=list)
    skipped: set[str] = field(default_factory=set)
    ended: str = ""

    def run(self, path: str) -> None:
        """Search the file or the folder at `path`. Raises ToolError if it cannot be opened."""
        give_up = time.monotonic() + SECONDS_MOST
        files = 0
        for entry in self._entries(path):
            files += self._wanted(entry)
            if files > FILES_MOST:
                self.ended = f"Only the first {FILES_MOST:,} files were searched: give a folder or a glob."
                return
            for line in self._lines(entry):
                if line and len(self.found) == self.most:
                    self.ended = f"Only the first {self.most} lines: give a folder or a glob, or a longer pattern."
                    return
                if time.monotonic() >= give_up:
                    at = printable(entry.path)
                    self.ended = f"Stopped after {SECONDS_MOST:.0f} seconds at {at}: give a folder or a glob."
                    return
                if line:
                    self.found.append(line)

    def _entries(self, path: str) -> Iterator[Entry]:
        if self.box.kind(path) == "folder":
            yield from self.box.walk(path, DEPTH, ENTRIES)
            return
        with self.box.file(path) as (_, size):
            yield Entry(path, "file", size)

    def _wanted(self, entry: Entry) -> bool:
        """Return whether to search this entry: a file whose name (or path, if the glob has a slash) fits the glob."""
        path = entry.path if "/" in self.glob else entry.path.rpartition("/")[2]
        fits = not self.glob or fnmatchcase(path, self.glob)
        return entry.kind == "file" and fits and self.among(entry.path)

    def _lines(self, entry: Entry) -> Iterator[Found | None]:
        """Yield the lines found in an entry, and None first and for each other line, so that the time is checked."""
        yield None
        if not self._wanted(entry):
            return
        if entry.size > FILE_MOST:
            self.skipped.add(entry.path)
            return
        try:
            content = self.box.read(entry.path, FILE_MOST)
        except ToolError:
            return  # removed, grown or made inaccessible since it was listed
        if b"\0" in content:
            return
        for number, line in enumerate(content.decode("utf-8-sig", "replace").split("\n"), 1):
            if len(line) > LINE_SEARCHED_MOST:
                self.skipped.add(entry.path)
                continue
            at = self.pattern.search(line)
            yield Found(entry.path, number, _excerpt(line, at.start(), at.end())) if at else None


def compile_pattern(pattern: str, *, regex: bool, ignore_case: bool) -> re2.Pattern[str]:
    """Return the compiled pattern, whose search time is linear in the text. Raises ToolError for an invalid one."""
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.literal = not regex
    options.max_mem = MEMORY_MOST
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if error.args else ""
        raise ToolError(f"{pattern!r} is not a valid RE2 regular expression: {why}", code="bad_pattern") from error


def _excerpt(line: str, start: int, end: int) -> str:
    """Return the line; of a long one, the part around the match."""
    line = line.removesuffix("\r")
    if len(line) <= LINE_MOST:
        return line
    begin = max(0, min(start - (LINE_MOST - min(end - start, LINE_MOST)) // 2, len(line) - LINE_MOST))
    cut = line[begin : begin + LINE_MOST]
    return ("..." if begin else "") + cut + ("..." if begin + LINE_MOST < len(line) else "")
