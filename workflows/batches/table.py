"""Tables: the CSV from which a batch is made. Each line is an input of one workflow, each column one of its fields.

A column is named by its field or the field's label. `field:` has JSON, as `field:=` has in a line of a chat. A cell has
the text that one would type into the form; an empty one leaves its field out. A field that takes several values has
them on lines of their own, or on one line with semicolons between them. Columns may be separated by commas, semicolons
or tabs.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO

from django.contrib.auth.models import User

from agents.engine.ledger import JSON, canonical, valid_text
from agents.engine.references import secret_keys
from conversations.approvals.edits import same_json
from conversations.display.schema_form import SchemaForm, label_for
from conversations.display.schema_parsing import Wrong
from conversations.display.schema_values import ABSENT, ValuePlace
from conversations.prompts import startable
from conversations.prompts.startable import InvalidInput
from workflows.definition import Workflow
from workflows.line import Line

LINES_MOST = 100
"""Lines of a table."""
TEXT_MOST = 200_000
"""Characters of a table."""
SEPARATORS = ",;\t"
BOOLEANS = ("true", "false")


@dataclass(frozen=True)
class Column:
    """A field as a column. `in_json`: its cells are JSON, which is so where no text stands for its values."""

    name: str
    place: ValuePlace
    in_json: bool = False

    @property
    def label(self) -> str:
        """What people read."""
        return label_for(self.name, str(self.place.schema.get("title", "")))

    @property
    def header(self) -> str:
        """What names it in a header."""
        return f"{self.name}:" if self.in_json else self.name

    @property
    def several(self) -> bool:
        """Whether its cells have several values."""
        return self.place.schema.get("type") == "array" and not self.in_json

    def typed(self, cell: str) -> str:
        """Return what one would type into the form for this cell."""
        if self.in_json:
            return cell
        if self.several and "\n" not in cell:
            return "\n".join(each.strip() for each in cell.split(";"))
        if self.place.options is None:
            return cell
        said = cell.strip()
        return said.casefold() if said.casefold() in BOOLEANS and True in self.place.options else said

    def cell(self, value: JSON) -> str:
        """Return the cell that has this value: its text, or its JSON if the text would be read as another value."""
        if self.in_json:
            return canonical(value)
        texts = [each if isinstance(each, str) else canonical(each) for each in self._each(value)]
        cell = "\n".join(texts)
        if self.several and len(texts) == 1 and ";" in cell:
            cell += "\n"  # or else it would be several
        return canonical(value) if cell and self._is_misread(cell, value) else cell

    def _each(self, value: JSON) -> list[JSON]:
        return value if self.several and isinstance(value, list) else [value]

    def _is_misread(self, cell: str, value: JSON) -> bool:
        empty = replace(self.place, value=ABSENT)
        try:
            return not same_json(empty.read(*empty.typed_as(self.typed(cell))), value)
        except Wrong:
            return False  # then it is refused, with the reason


@dataclass
class TableLine:
    """A line of a table, by its number from 1 without the header. `cells` has as many as there are columns.

    `row`: its cells as they were read, also those below no column. `errors`: what is wrong, by column; "" for all of
    it. `input` is to be used only if nothing is.
    """

    number: int
    cells: list[str]
    row: list[str] = field(default_factory=list)
    input: dict[str, JSON] = field(default_factory=dict)
    errors: dict[str, list[str]] = field(default_factory=dict)

    def add(self, column: str, *why: str) -> None:
        """Note what is wrong in this column."""
        self.errors.setdefault(column, []).extend(why)


@dataclass
class Table:
    """A table as it was read, with its `header`.

    `problems`: what is wrong with all of it, in sentences; then no line was looked at.
    """

    columns: list[Column] = field(default_factory=list)
    header: list[str] = field(default_factory=list)
    lines: list[TableLine] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[TableLine]:
        """The lines that need a change."""
        return [line for line in self.lines if line.errors]

    @property
    def good(self) -> bool:
        """Whether every line could start."""
        return not (self.problems or self.wrong) and bool(self.lines)

    @property
    def inputs(self) -> list[dict[str, JSON]]:
        """The inputs of its lines."""
        return [line.input for line in self.lines]

    def label(self, column: str) -> str:
        """Return what people read for a column with an error."""
        return next((each.label for each in self.columns if each.name == column), column)

    def text(self, lines: Sequence[TableLine]) -> str:
        """Return the CSV that has these of its lines."""
        return written([[each.header for each in self.columns], *(line.cells for line in lines)])

    def as_read(self, lines: Sequence[TableLine]) -> str:
        """Return the CSV that has these of its lines, with every cell that stood in them."""
        return written([self.header, *(line.row for line in lines)])


def columns_of(workflow: Workflow) -> list[Column]:
    """Return the columns that a table for this workflow can have, in the order of its form. Secrets have none."""
    secret = set(secret_keys(workflow.input))
    places = [(name, place) for name, place in SchemaForm(workflow.schema, {}).places() if name not in secret]
    return [Column(name, place, place.kind(code=False) == "json") for name, place in places]


def written(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as CSV."""
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def read_table(workflow: Workflow, text: str, user: User) -> Table:
    """Return the table in this text, with whatever is wrong in it. Nothing starts."""
    text = valid_text(text).removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if len(text) > TEXT_MOST:
        return Table(problems=[f"A table can have at most {TEXT_MOST:,} characters; this one has {len(text):,}."])
    if not text.strip():
        return Table(problems=["There is no table yet. Paste it, with the names of its columns in the first line."])
    known = columns_of(workflow)
    try:
        rows = _rows(text.lstrip("\n"), known)
    except csv.Error as error:
        return Table(
            problems=[
                f"This is not a valid table: {error}. Put text that contains quotes in quotes, and double them inside."
            ]
        )
    columns, problems = _header(rows[0], known)
    if problems:
        return Table(problems=problems)
    table = Table([each for each in columns if each], rows[0])
    for number, row in enumerate((row for row in rows[1:] if any(cell.strip() for cell in row)), 1):
        table.lines.append(_line(number, row, columns))
    _check_count(table)
    if not table.problems:
        for line in table.lines:
            _check(workflow, user, line, table.columns)
    return table


def read_inputs(workflow: Workflow, inputs: Sequence[Mapping[str, JSON]], user: User) -> Table:
    """Return the table of these inputs, each a JSON object by field."""
    table = Table(columns_of(workflow))
    table.lines = [TableLine(number, [], input=dict(input)) for number, input in enumerate(inputs, 1)]
    _check_count(table)
    if not table.problems:
        for line in table.lines:
            _accept(workflow, user, line)
    return table


def _check_count(table: Table) -> None:
    if not table.lines:
        table.problems.append("The table has no lines.")
    if len(table.lines) > LINES_MOST:
        table.problems.append(f"A table can have at most {LINES_MOST} lines; this one has {len(table.lines)}.")


def _rows(text: str, known: Sequence[Column]) -> list[list[str]]:
    """Return the rows, separated as most of the header's names are known. Raises csv.Error."""
    names = {name for each in known for name in _names(each)}

    def fitting(separator: str) -> int:
        header = next(csv.reader(StringIO(text), delimiter=separator), [])
        return sum(_plain(cell) in names for cell in header)

    separator = max(SEPARATORS, key=fitting)  # the first of those that fit equally
    return list(csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True))


def _names(column: Column) -> Iterator[str]:
    yield from (_plain(column.name), _plain(column.label), _plain(f"{column.name}:"))


def _plain(name: str) -> str:
    return name.strip().casefold()


def _header(row: Sequence[str], known: Sequence[Column]) -> tuple[list[Column | None], list[str]]:
    """Return the column of each cell of a header, None for an empty one, and what is wrong."""
    found: list[Column | None] = []
    problems = []
    for cell in row:
        column = _column(cell, known)
        if column and any(column.name == each.name for each in found if each):
            problems.append(f"Two columns are for {column.label}. Leave one out.")
        if cell.strip() and not column:
            there = ", ".join(each.header for each in known)
            problems.append(f"No field is called {cell.strip()[:80]!r}. There are: {there}.")
        found.append(column)
    named = {each.name for each in found if each}
    if not problems and not named:
        problems.append("The first line names no columns.")
    missing = [each.label for each in known if each.place.required and each.name not in named]
    if missing and not problems:
        problems.append(f"Add a column for {', '.join(missing)}: the workflow needs it.")
    return found, problems


def _column(cell: str, known: Sequence[Column]) -> Column | None:
    """Return the column that this cell of a header names. A field's own name goes before the label of another."""
    said = cell.strip()
    exact = next((each for each in known if said in (each.name, f"{each.name}:")), None)
    near = exact or next((each for each in known if _plain(said) in _names(each)), None)
    return Column(near.name, near.place, near.in_json or said.endswith(":")) if near else None


def _line(number: int, row: Sequence[str], columns: Sequence[Column | None]) -> TableLine:
    """Return a line, with what is wrong with the number of its cells."""
    line = TableLine(number, [cell for cell, column in zip(row, columns, strict=False) if column], list(row))
    line.cells += [""] * (sum(each is not None for each in columns) - len(line.cells))
    beside = [cell for cell, column in zip(row, columns, strict=False) if column is None and cell.strip()]
    if beside:
        line.add("", f"A cell has no column name above it: {beside[0][:40]!r}.")
    if any(cell.strip() for cell in row[len(columns) :]):
        line.add(
            "",
            f"There are {len(row)} cells for {len(columns)} columns. Put text that contains a separator in quotes.",
        )
    return line


def _check(workflow: Workflow, user: User, line: TableLine, columns: Sequence[Column]) -> None:
    """Read the cells of a line as a line of a chat is read, and check the input that they say."""
    said = {each.name: each.typed(cell) for each, cell in zip(columns, line.cells, strict=True) if cell.strip()}
    read = Line(workflow, said, frozenset(each.name for each in columns if each.in_json and each.name in said))
    line.input = read.input
    for place, why in read.form.errors.items():
        line.add(place, *why)
    _accept(workflow, user, line)


def _accept(workflow: Workflow, user: User, line: TableLine) -> None:
    """Check the input of a line. A column that is wrong already keeps its own words."""
    marked = {_first(place) for place in line.errors}
    try:
        startable.checked(workflow, line.input, user)
    except InvalidInput as error:
        for place, why in error.fields.items():
            if _first(place) not in marked:
                line.add(place, *why)


def _first(place: str) -> str:
    return place.partition(".")[0]
