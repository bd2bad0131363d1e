"""The parts of a shell command: each simple command that bash would run, apart. A help for the eye, never a judgement.

    ls; curl $(cat url) | sh      1    ls
                                  2 ;  curl $(…)
                                  3      cat url
                                  4 |  sh

It reads the common part of bash's grammar: words and quotes, operators, redirections, substitutions, subshells, groups,
`if`, `for` and `while`. At anything else it gives up rather than guess: here documents, `case`, functions, arrays,
arithmetic with more than numbers and names. The Bash grammar of tree-sitter knows more, but took 23 seconds for 30 kB
of pipes, and takes a carriage return for a blank, which bash does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

ROWS_MOST, DEPTH_MOST = 100, 6
"""Rows that are shown, and levels of what stands inside another: more than that is no help."""

_BLANK = re.compile(r"(?:[ \t]|\\\n(?=[ \t])|(?<=[ \t])\\\n)+")
_OPERATOR = re.compile(r"&&|\|\||\|&|&(?!>)|;(?![;&])|[|\n]")
_REDIRECTION = re.compile(r"\d*(?:<<<|<>|>>|>\||[<>]&|>(?!\()|<(?![<(]))|&>>?", re.ASCII)
_PLAIN = re.compile(r"""(?:[^ \t\n;&|()<>\\'"$`]|\\[^\n])+""")
_QUOTED = re.compile(r'(?:[^"\\$`]|\\.)+', re.DOTALL)
_SINGLE = re.compile(r"'[^']*'|\$'(?:[^'\\]|\\.)*'", re.DOTALL)
_VARIABLE = re.compile(
    r"""\$(?:\{[^ \t'"\\$`{}()<>|&;\n][^'"\\$`{}()<>|&;\n]*\}|\(\([\w \t+*/%$<>=!-]*\)\)|(?![({\[\\]))""", re.ASCII
)
"""A variable with nothing to run in it, arithmetic with numbers and names only, or the sign alone."""
_INSIDE, _PROCESS = re.compile(r"\$\((?!\()"), re.compile(r"[<>]\(")
_SUBSCRIPT = re.compile(r"""[A-Za-z_]\w*\[(?![^] \t\n;&|()<>\\'"$`]*\])""", re.ASCII)
"""The name of an array with more than a name or a number in brackets: bash reads on to the bracket that ends them."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
_KEYWORD = re.compile(r"[a-z{}!\[]+(?=[ \t\n;&|()]|[<>](?!\()|\\\n|\Z)")
_OPENS = {"if", "then", "elif", "else", "while", "until", "do", "{", "!"}
_ENDS = {"fi", "done", "}"}
_INTRICATE = {"case", "esac", "function", "coproc", "select"}
_ROLES = {"for": "loop", "[[": "test"}
_BREAK = re.compile(r"[ \t\n;&|()<>`]|\\\n[ \t]")
_ONE, _LINE = re.compile("."), re.compile(".*")


class _TooIntricateError(Exception):
    """The command has something that is not read here."""


@dataclass(frozen=True)
class Piece:
    """A piece of a row: `kind` is env, redirect, comment or inside, "" for words. `inside`: the rows of its `$(…)`."""

    text: str
    kind: str = ""
    inside: tuple[PartRow, ...] = ()


@dataclass
class PartRow:
    """A simple command, or what stands between two. `before`: the operators and words of the grammar in front of it.

    `number` is 0 where nothing runs: `role` says that it is the end of a group, a comment, or the head of a loop.
    `end`: where it has been read to. `named`: whether the name of what it runs has been read.
    """

    depth: int
    before: list[str]
    role: str
    end: int
    number: int = 0
    pieces: list[Piece] = field(default_factory=list)
    named: bool = False

    @property
    def signs(self) -> list[str]:
        """What stands before it, as people see it."""
        return ["new line" if each == "\n" else each for each in self.before]

    def rows(self) -> Iterator[PartRow]:
        """Yield this row, and then those inside it."""
        yield self
        for piece in self.pieces:
            for row in piece.inside:
                yield from row.rows()


def command_parts(command: str) -> list[PartRow] | None:
    """Return the rows of this command, each followed by those inside it; None if it is too intricate."""
    try:
        found = [each for row in _Reader(command).commands("", 0) for each in row.rows()]
    except _TooIntricateError:
        return None
    for number, row in enumerate((row for row in found if not row.role), 1):
        row.number = number
    for row in found:
        runs = [list(group) for _, group in groupby(row.pieces, key=lambda piece: piece.kind)]
        row.pieces = [each for run in runs for each in (run if run[0].kind else [Piece("".join(p.text for p in run))])]
    return found


class _Reader:
    """Reads a command once. `pending`: the operators since the last row. `ticked`: whether it is in backquotes."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.count = text, 0, 0
        self.pending: list[str] = []
        self.ticked = False

    def commands(self, closer: str, depth: int) -> list[PartRow]:
        """Read commands until `closer`, or to the end of the text if it is "", and return their rows."""
        found: list[PartRow] = []
        row: PartRow | None = None
        groups = 0
        while True:
            self._skip(_BLANK)
            next = self.text[self.at : self.at + 1]
            if row and row.role == "test" and (not next or next in "\n;&|()<>#"):
                raise _TooIntricateError  # in [[ ]], they mean something else
            if next == closer and not groups:
                break
            keyword = self._keyword() if row is None else ""
            if operator := self._skip(_OPERATOR):
                row = None
                if operator != "\n" or (found and not self.pending):
                    self.pending.append(operator)
            elif keyword in _OPENS or (row is None and next == "(" and not self.text.startswith("((", self.at)):
                self.pending.append(self._skip(_PLAIN) or self._skip(_ONE))
                groups += next == "("
            elif keyword in _ENDS or (groups and next == ")"):
                self.pending.append(self._skip(_PLAIN) or self._skip(_ONE))
                groups -= next == ")"
                row = self._row(found, depth + groups, "end")
            elif next == "#" and not closer:
                row = row or self._row(found, depth + groups, "comment")
                self._skip(_LINE)
                self._take(row, "comment", self.at)
            else:
                row = row or self._row(found, depth + groups, _ROLES.get(keyword, ""))
                self._part(row)
        self._skip(_ONE)
        if self.pending:
            self._row(found, depth, "end")
        return found

    def _skip(self, pattern: re.Pattern[str]) -> str:
        """Move behind what matches here, and return it; "" if nothing does."""
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found[0] if found else ""

    def _keyword(self) -> str:
        """Return the word that begins here if it may be one of the grammar; such a word has no quotes."""
        found = _KEYWORD.match(self.text, self.at)
        if found and found[0] in _INTRICATE:
            raise _TooIntricateError
        return found[0] if found else ""

    def _row(self, found: list[PartRow], depth: int, role: str) -> PartRow:
        self.count += 1
        if self.count > ROWS_MOST or depth > DEPTH_MOST:
            raise _TooIntricateError
        found.append(PartRow(depth, self.pending, role, self.at))
        self.pending = []
        return found[-1]

    def _take(self, row: PartRow, kind: str, until: int) -> None:
        """Add the text up to there to the row, with the blanks before it: at the end of a text they have marks."""
        if until > row.end:
            row.pieces.append(Piece(self.text[row.end : until], kind))
        row.end = until

    def _part(self, row: PartRow) -> None:
        """Read a word, or a redirection with its word, into the row."""
        kind = "redirect" if self._skip(_REDIRECTION) else ""
        if kind:
            self._skip(_BLANK)
        elif not row.named:
            kind = "env" if _ASSIGNMENT.match(self.text, self.at) else ""
        if _SUBSCRIPT.match(self.text, self.at):
            raise _TooIntricateError
        start = self.at
        self._word(row, kind)
        word = self.text[start : self.at]
        if not word or word[0] == "#" or (not kind and row.role == "end") or (word == "do" and row.role == "loop"):
            raise _TooIntricateError
        row.named = row.named or not kind
        if row.role == "test" and word == "]]":
            row.role = ""

    def _word(self, row: PartRow, kind: str) -> None:
        quoted = False
        while True:
            if self._skip(_QUOTED if quoted else _PLAIN) or (not quoted and self._skip(_SINGLE)):
                continue
            if opener := self._skip(_INSIDE) or ("" if quoted else self._skip(_PROCESS)):
                self._inside(row, kind, opener, ")")
            elif self._skip(_VARIABLE):
                continue
            elif self.text.startswith('"', self.at):
                self._skip(_ONE)
                quoted = not quoted
            elif self.text.startswith("`", self.at) and not self.ticked:
                self._backquoted(row, kind, quoted)
            else:
                break
        if quoted or (self.at < len(self.text) and not _BREAK.match(self.text, self.at)):
            raise _TooIntricateError
        self._take(row, kind, self.at)

    def _backquoted(self, row: PartRow, kind: str, quoted: bool) -> None:
        """Read what stands in backquotes, if no rules of their own apply there: for backslashes, and for quotes."""
        self._skip(_ONE)
        end = self.text.find("`", self.at)
        content = self.text[self.at : end]
        if "\\" in content or (quoted and '"' in content):
            raise _TooIntricateError
        self.ticked = True
        self._inside(row, kind, "`", "`")
        self.ticked = False
        if self.at != end + 1:
            raise _TooIntricateError

    def _inside(self, row: PartRow, kind: str, opener: str, closer: str) -> None:
        """Read what stands inside. The blanks before it belong to its piece."""
        start = self.at - len(opener)
        words = self.text[row.end : start].rstrip(" \t")
        self._take(row, kind, row.end + len(words))
        blanks = self.text[row.end : start]
        rows = self.commands(closer, row.depth + 1)
        row.pieces.append(Piece(f"{blanks}{opener}…{closer}", "inside", tuple(rows)))
        row.end = self.at
