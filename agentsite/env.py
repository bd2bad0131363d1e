"""Typed readers of the environment and of the `.env` file beside `manage.py`.

A variable of the process wins over the same name in the file; a blank value counts as not set. Every reader raises
`CannotStart` with one sentence where a value makes no sense, so that a typing error never becomes a default.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from agentsite.errors import CannotStart

ROOT = Path(__file__).resolve().parent.parent

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}
_MAILBOX = re.compile(r"[^@<>\s]+@[^@<>\s]+|[^@<>\r\n]*<[^@<>\s]+@[^@<>\s]+>")


class Environment:
    """Settings by name, as text in `values`, read as what they stand for."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = {name: value.strip() for name, value in values.items()}

    def text(self, name: str, default: str = "") -> str:
        """The value, or `default` where it is not set or blank."""
        return self._values.get(name) or default

    def flag(self, name: str, default: bool = False) -> bool:
        """Yes or no, written as 1/0, true/false, yes/no or on/off in any case."""
        value = self.text(name).lower()
        if value and value not in _TRUE | _FALSE:
            raise CannotStart(f"{name} is {value!r}: write 1 for yes or 0 for no.")
        return value in _TRUE if value else default

    def number(self, name: str, default: float, *, least: float = 0, most: float = float("inf")) -> float:
        """A number from `least` to `most`, in the unit its name gives."""
        value = self.text(name)
        try:
            number = float(value) if value else float(default)
        except ValueError:
            raise CannotStart(f"{name} is {value!r}: write a number.") from None
        if not least <= number <= most:  # false for NaN as well
            raise CannotStart(f"{name} is {value!r}: write a number {_span(least, most)}.")
        return number

    def whole(self, name: str, default: int, *, least: int = 0, most: float = float("inf")) -> int:
        """A whole number from `least` to `most`."""
        number = self.number(name, default, least=least, most=most)
        if not number.is_integer():
            raise CannotStart(f"{name} is {self.text(name)!r}: write a whole number.")
        return int(number)

    def choice(self, name: str, default: str, choices: Iterable[str]) -> str:
        """One of `choices`."""
        value, allowed = self.text(name, default), list(choices)
        if value not in allowed:
            raise CannotStart(f"{name} is {value!r}: write one of {', '.join(allowed)}.")
        return value

    def items(self, name: str) -> list[str]:
        """The items of a comma-separated value, without blanks; empty where it is not set."""
        return [item.strip() for item in self.text(name).split(",") if item.strip()]

    def url(self, name: str, schemes: Iterable[str]) -> str:
        """An address that begins with one of `schemes` and names a host; "" where it is not set."""
        value, allowed = self.text(name), list(schemes)
        try:
            parts = urlsplit(value)
            good = not value or (parts.scheme in allowed and parts.hostname and parts.port != 0)
        except ValueError:  # a bracket that does not close, a port that is no number
            good = False
        if not good:  # the value is not repeated: an address may carry a password
            raise CannotStart(f"{name} is no address: write one like {allowed[0]}://host.")
        return value

    def mailbox(self, name: str) -> str:
        """An e-mail address, alone or as `Name <address>`; "" where it is not set."""
        value = self.text(name)
        if value and not _MAILBOX.fullmatch(value):
            raise CannotStart(
                f"{name} is {value!r}: write an address like site@example.org or Site <site@example.org>."
            )
        return value

    def path(self, name: str, default: Path) -> Path:
        """A path; what is relative stands below the folder of `manage.py`."""
        return (ROOT / Path(self.text(name, str(default))).expanduser()).resolve()


def environment() -> Environment:
    """The environment of this process over its `.env` file.

    `AGENTSITE_ENV_FILE` names another file than the `.env` beside `manage.py`; where there is none, nothing is read.
    """
    file = ROOT / os.environ.get("AGENTSITE_ENV_FILE", ".env")
    return Environment({**_read_file(file), **{name: value for name, value in os.environ.items() if value.strip()}})


def _read_file(file: Path) -> dict[str, str]:
    if not file.is_file():
        return {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotStart(f"{file} cannot be read ({error}): correct it or take it away.") from None
    values = {}
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, value = _read_line(line, f"{file}, line {number}")
            values[name] = value
    return values


def _read_line(line: str, where: str) -> tuple[str, str]:
    """`NAME=value`, with `export` before it and quotes around the value where somebody wrote them."""
    name, equals, value = line.strip().removeprefix("export ").partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name.isidentifier():
        raise CannotStart(f"{where} is no setting: write NAME=value, or # before a remark.")
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return name, value


def _span(least: float, most: float) -> str:
    return f"of at least {least:g}" if most == float("inf") else f"from {least:g} to {most:g}"
