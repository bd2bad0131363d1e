"""Markdown files with YAML front matter, from which skills and blueprints are imported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import yaml

from agents.engine.ledger import valid_text

FILE_MOST = 100_000
"""Bytes of one file: far more than an agent should read at once."""
FRONT_MOST = 10_000
"""Characters of its front matter: a description has at most 1,024."""

_FRONT = re.compile(r"\s*---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)

Front = dict[object, object]
Outcome = Literal["added", "updated", "unchanged"]


class _Called(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Called)


class BadFile(Exception):
    """A file that cannot be imported. The message says what is wrong with it and how to fix it."""


@dataclass(frozen=True)
class Imported:
    """The result for one file: the `outcome` for what is called `name`, or the `problem` because of which it was not.

    `note` says what else there is to know of it.
    """

    file: Path
    name: str = ""
    outcome: Outcome | Literal[""] = ""
    note: str = ""
    problem: str = ""


def import_files(
    files: Iterable[Path], folder: Path, read: Callable[[bytes], T], save: Callable[[T], tuple[Outcome, str]]
) -> Iterator[Imported]:
    """Import these files of a folder. Yields one result for each; whatever is wrong with one, the others are imported.

    `read` returns what is in a file and may raise BadFile, and so may `save`, which returns what it did, and a note.
    """
    seen: dict[str, Path] = {}
    for file in files:
        try:
            found = read(content_of(file, folder))
            _check_name(found.name, seen)
            seen[found.name] = file
            outcome, note = save(found)
        except BadFile as bad:
            yield Imported(file, problem=str(bad))
        else:
            yield Imported(file, found.name, outcome, note)


def _check_name(name: str, seen: Mapping[str, Path]) -> None:
    if other := seen.get(name):
        raise BadFile(f"{other} already has the name {name!r}: rename one of the two.")


def content_of(file: Path, folder: Path) -> bytes:
    """Return the content of a file. Raises BadFile, also for a link that leads out of `folder`."""
    try:
        real = file.resolve(strict=True)
        if not real.is_relative_to(folder.resolve()):
            raise BadFile("it is a link that leads out of the folder: copy the file into the folder instead.")
        if not real.is_file():
            raise BadFile("it is not a regular file.")
        with real.open("rb") as stream:
            return stream.read(FILE_MOST + 1)
    except OSError as error:
        raise BadFile(f"it cannot be read ({error.strerror}).") from error


def parts(content: bytes, *needed: str) -> tuple[Front, str]:
    """Return the front matter and the body of a file. Raises BadFile, with the names of the fields that it needs."""
    match = _FRONT.match(text := _text(content))
    if not match:
        fields = "".join(f"a {name}, " for name in needed).removesuffix(", ")
        raise BadFile(f"it does not begin with front matter: put `---`, {fields} and `---` at the top.")
    front = _front_matter(match[1], needed)
    body = text[match.end() :].strip()
    if not body:
        raise BadFile("there is no text below the front matter: write the instructions for the agent there.")
    return front, body


def field(front: Front, name: str, most: int) -> str:
    """Return a text of the front matter as one line. Raises BadFile if there is none, or it is too long."""
    value = front.get(name)
    if not isinstance(value, str) or not value.strip():
        raise BadFile(f"its front matter has no {name}: add `{name}: ...` with a text.")
    line = " ".join(_valid(name, value).split())
    if len(line) > most:
        raise BadFile(f"its {name} has {len(line):,} characters: shorten it to {most:,} or fewer.")
    return line


def names(front: Front, name: str, *, example: str) -> list[str]:
    """Return a list of names of the front matter, or a text with commas. Raises BadFile for anything else."""
    value = front.get(name) or []
    found = [each for each in value.split(",") if each.strip()] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise BadFile(f"its `{name}` must be a list of names: write, for example, `{name}: [{example}]`.")
    if not all(each.strip() for each in found):
        raise BadFile(f"its `{name}` has an empty name: remove it, or write what is missing.")
    return list(dict.fromkeys(" ".join(_valid(name, each).split()) for each in found))


def _valid(name: str, value: str) -> str:
    """Return the value of a field. Raises BadFile for what no database keeps: YAML can write it with a backslash."""
    if valid_text(value) != value:
        raise BadFile(f"its {name} has a null byte or half a character: write it without \\0 and \\ud800 to \\udfff.")
    return value


def _text(content: bytes) -> str:
    if len(content) > FILE_MOST:
        raise BadFile(f"it has more than {FILE_MOST:,} bytes: shorten it, and move details to other files.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadFile("it is not UTF-8: save it as UTF-8.") from None
    if "\0" in text:
        raise BadFile("it is not text: it contains a null byte.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _front_matter(text: str, needed: Iterable[str]) -> Front:
    if len(text) > FRONT_MOST:
        raise BadFile(f"its front matter has more than {FRONT_MOST:,} characters: shorten it.")
    try:
        front = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise BadFile(f"its front matter is not valid YAML ({why}): put text with a colon in quotes.") from None
    if not isinstance(front, dict):
        fields = " and ".join(f"`{name}: ...`" for name in needed)
        raise BadFile(f"its front matter has no fields: write {fields}.")
    return front
