"""Searching the files of a workspace, line by line, in bounded time whatever the pattern."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import re2

from agents.engine.errors import ToolError
from agents.plugins.files.box import Box, Entry
from agents.plugins.files.status import printable

FILE_MOST = 10 * 2**20
"""Bytes of a file that is searched; larger ones are named as left out."""
LINE_SEARCHED_MOST = 1_000_000
"""Characters of a line that is searched: 9 seconds for the slowest of patterns. Longer ones are named as left out."""
FILES_MOST = 20_000
"""Files that one search opens."""
SECONDS_MOST = 10.0
"""Time that one search takes; what is left is said to be left."""
MEMORY_MOST = 8 * 2**20
"""Bytes that a pattern may take: re2's own default, said aloud."""
DEPTH = 40
ENTRIES = 10_000
"""Levels of folders, and entries of each, that are looked at."""
LINE_MOST = 200
"""Characters of a line that are shown, around what was found."""


@dataclass
class Search:
    """One search: what is found as it goes, and why it ended before everything was seen. `most`: results wanted."""

    box: Box
    pattern: re2.Pattern[str]
    glob: str
    most: int
    found: list[str] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)
    ended: str = ""

    def run(self, path: str) -> None:
        """Search the file or the folder at `path`. Raises ToolError where it cannot be looked at."""
        give_up = time.monotonic() + SECONDS_MOST
        for at, line in self._seen(path):
            if line and len(self.found) == self.most:
                self.ended = f"The first {self.most} lines: name a folder or a glob, or search for more of the text."
                return
            if time.monotonic() >= give_up:
                self.ended = f"Stopped after {SECONDS_MOST:.0f} seconds at {at}: name a folder, or a glob."
                return
            if line:
                self.found.append(line)

    def _seen(self, path: str) -> Iterator[tuple[str, str]]:
        """Each path that is come by, with what is found there line by line; "" at least once, to look at the time."""
        files = 0
        for entry in self._entries(path):
            at = printable(entry.path)
            yield at, ""
            if not self._wanted(entry):
                continue
            files += 1
            if files > FILES_MOST:
                self.ended = f"Only the first {FILES_MOST:,} files were searched: name a folder, or a glob."
                return
            for line in self._lines(entry):
                yield at, line

    def _entries(self, path: str) -> Iterator[Entry]:
        if self.box.kind(path) == "folder":
            yield from self.box.walk(path, DEPTH, ENTRIES)
            return
        with self.box.file(path) as (_, size):
            yield Entry(path, "file", size)

    def _wanted(self, entry: Entry) -> bool:
        """A file, by its name, or by its whole path where the glob has a slash. A file that is named is always one."""
        path = entry.path if "/" in self.glob else entry.path.rpartition("/")[2]
        return entry.kind == "file" and (not self.glob or fnmatchcase(path, self.glob))

    def _lines(self, entry: Entry) -> Iterator[str]:
        """What is found in one file, line by line; "" for a line without, so that the time is looked at."""
        if entry.size > FILE_MOST:
            self.left_out.add(entry.path)
            return
        try:
            content = self.box.read(entry.path, FILE_MOST)
        except ToolError:
            return  # gone, grown or closed since it was listed
        if b"\0" in content:
            return
        for number, line in enumerate(content.decode("utf-8-sig", "replace").split("\n"), 1):
            if len(line) > LINE_SEARCHED_MOST:
                self.left_out.add(entry.path)
                continue
            at = self.pattern.search(line)
            yield f"{printable(entry.path)}:{number}: {_excerpt(line, at.start(), at.end())}" if at else ""


def compiled(pattern: str, *, regex: bool, ignore_case: bool) -> re2.Pattern[str]:
    """The pattern, of a kind that takes time in proportion to the text. Raises ToolError for one that is none."""
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.literal = not regex
    options.max_mem = MEMORY_MOST
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if error.args else ""
        raise ToolError(f"{pattern!r} is no regular expression of RE2: {why}", code="bad_pattern") from error


def _excerpt(line: str, start: int, end: int) -> str:
    """The line; of a long one the part around what was found."""
    line = line.removesuffix("\r")
    if len(line) <= LINE_MOST:
        return line
    begin = max(0, min(start - (LINE_MOST - min(end - start, LINE_MOST)) // 2, len(line) - LINE_MOST))
    cut = line[begin : begin + LINE_MOST]
    return ("..." if begin else "") + cut + ("..." if begin + LINE_MOST < len(line) else "")
