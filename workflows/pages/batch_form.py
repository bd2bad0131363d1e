"""The form of a batch: the table that was pasted or sent as a file, checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile

from agents.engine.ledger import valid_text
from conversations.display.schema_parsing import label_of
from workflows.batches.starting import SIDE_BY_SIDE, why_no_batch
from workflows.batches.table import LINES_MOST, TEXT_MOST, Column, Table, TableLine, columns_of, read_table, written
from workflows.definition import Workflow
from workflows.models import Batch

FILE_MOST = 4 * TEXT_MOST
"""Bytes of a file: no character has more than four."""
ENCODINGS = ("utf-8", "cp1252")
"""What spreadsheets write."""
NO_TEXT = "This is not a CSV file. In a spreadsheet, save the table as “CSV UTF-8” and send that."
CHANGED = "The table was changed after it was checked, so nothing has started. Check it once more below."


class BadTable(ValueError):
    """A file that is no table. The message says what to do."""


@dataclass(frozen=True)
class CheckedCell:
    """A cell in the preview, with what is wrong with it."""

    text: str
    errors: list[str]


@dataclass(frozen=True)
class CheckedRow:
    """A line in the preview. `errors`: what belongs to none of its cells."""

    line: TableLine
    cells: list[CheckedCell]
    errors: list[str]


@dataclass
class BatchForm:
    """The form with which a person runs a workflow for each line of a table.

    `text` is the table, `checked` the digest of the one that was last shown to them, `left_out` what they left out.
    `problem` says why nothing has started, `taken` is the batch that this form has started before.
    """

    workflow: Workflow
    user: User
    text: str = ""
    checked: str = ""
    key: str = field(default_factory=lambda: token_urlsafe(16))
    problem: str = ""
    taken: Batch | None = None
    left_out: str = ""

    lines_most = LINES_MOST
    side_by_side = SIDE_BY_SIDE

    @cached_property
    def why_none(self) -> str | None:
        """Why this workflow takes no table."""
        return why_no_batch(self.workflow)

    @cached_property
    def table(self) -> Table:
        """The table, as it was read and checked."""
        return read_table(self.workflow, self.text, self.user)

    @property
    def digest(self) -> str:
        """The digest of the table, by which the confirmation says what was looked at."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def confirmed(self) -> bool:
        """Whether this very table was shown to the person."""
        return self.checked == self.digest

    @property
    def columns(self) -> list[tuple[str, str, str, bool]]:
        """The header, label, description of each column that a table can have, and whether it must be there."""
        return [(each.header, each.label, _described(each), each.place.required) for each in columns_of(self.workflow)]

    @property
    def template(self) -> str:
        """A CSV with the workflow's columns and no lines."""
        return written([[each.header for each in columns_of(self.workflow)]])

    @property
    def rows(self) -> list[CheckedRow]:
        """The lines with their errors, each at its cell."""
        return [self._row(line) for line in self.table.lines]

    def _row(self, line: TableLine) -> CheckedRow:
        names = [each.name for each in self.table.columns]
        at: dict[str, list[str]] = {}
        beside = []
        for place, why in line.errors.items():
            name = place.partition(".")[0]
            if name in names:
                at.setdefault(name, []).extend(why)
            else:
                beside += [f"{place}: {each}" if place else each for each in why]
        cells = [CheckedCell(cell, at.get(name, [])) for name, cell in zip(names, line.cells, strict=True)]
        return CheckedRow(line, cells, beside)

    @property
    def sentences(self) -> list[str]:
        """What is wrong with the lines, such as "Line 3, Days: Enter a whole number."""
        names = [each.name for each in self.table.columns]

        def column(error: tuple[str, list[str]]) -> int:
            name = error[0].partition(".")[0]
            return names.index(name) if name in names else -1

        return [
            f"Line {line.number}{f', {self.label(place)}' if place else ''}: {' '.join(why)}"
            for line in self.table.wrong
            for place, why in sorted(line.errors.items(), key=column)
        ]

    def label(self, place: str) -> str:
        """Return what people read for the place of an error."""
        name, _, inner = place.partition(".")
        return f"{self.table.label(name)}{f' ({inner})' if inner else ''}"

    def leave_out_wrong(self) -> None:
        """Leave out the lines that are wrong, and keep them beside the table."""
        table, wrong = self.table, self.table.wrong
        self.left_out = "\n".join(filter(None, (self.left_out, table.as_read(wrong))))
        self.text = table.text([line for line in table.lines if not line.errors])
        del self.table


def posted_form(
    workflow: Workflow, user: User, posted: Mapping[str, str], file: UploadedFile[Any] | None, key: str
) -> BatchForm:
    """Return the form as it was sent. A file goes before the text; if it is none, the text stays, with the reason."""
    text = valid_text(posted.get("table", "")).replace("\r\n", "\n")
    form = BatchForm(workflow, user, text, posted.get("checked", ""), left_out=posted.get("left_out", ""))
    form.key = key or form.key
    if file:
        try:
            form.text = _text_of(file)
        except BadTable as error:
            form.problem = str(error)
    return form


def _text_of(file: UploadedFile[Any]) -> str:
    """Return the text of a file. Raises BadTable."""
    if (file.size or 0) > FILE_MOST:
        raise BadTable(f"A file can have at most {FILE_MOST:,} bytes; {file.name} has {file.size:,}.")
    content: bytes = file.read()
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings: tuple[str, ...] = ("utf-16",)
    else:
        encodings = ENCODINGS
    for encoding in encodings:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\x00" not in text:
            return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    raise BadTable(NO_TEXT)


def _described(column: Column) -> str:
    """Return what stands beside a column: the description of its field, and what its cells may be."""
    said, default = str(column.place.schema.get("description", "")), column.place.schema.get("default")
    how = "Several values, with semicolons between them." if column.several else "JSON." if column.in_json else ""
    if options := column.place.options:
        how = f"One of: {', '.join(map(label_of, options))}."
    usual = "" if default in (None, "", [], {}) else f"Default: {label_of(default)}."
    return " ".join(filter(None, (said, how, usual)))
