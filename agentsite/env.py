"""Environment variables: typed access to the environment and the `.env` file beside `manage.py`.

A variable of the process overrides the same name in the file; a blank value counts as not set. Every reader raises
`CannotStart` with one sentence if a value is invalid, so that a typing error never becomes a default.
"""

import os
import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from agentsite.errors import CannotStart

ROOT = Path(__file__).resolve().parent.parent

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}
_MAILBOX = re.compile(r"[^@<>\s]+@[^@<>\s]+|[^@<>\r\n]*<[^@<>\s]+@[^@<>\s]+>")


class Environment:
    """The settings in `values`, texts by name, with a reader for each type."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = {name: value.strip() for name, value in values.items()}

    def text(self, name: str, default: str = "") -> str:
        """Return the value, or `default` if it is not set or blank."""
        return self._values.get(name) or default

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a boolean, written as 1/0, true/false, yes/no or on/off in any case."""
        value = self.text(name).lower()
        if value and value not in _TRUE | _FALSE:
            raise CannotStart(f"{name} is {value!r}: write 1 for yes or 0 for no.")
        return value in _TRUE if value else default

    def number(self, name: str, default: float, *, least: float = 0, most: float = float("inf")) -> float:
        """Return a number from `least` to `most`, in the unit that its name gives."""
        value = self.text(name)
        try:
            number = float(value) if value else float(default)
        except ValueError:
            raise CannotStart(f"{name} is {value!r}: write a number.") from None
        if not least <= number <= most:  # false for NaN as well
            raise CannotStart(f"{name} is {value!r}: write a number {_span(least, most)}.")
        return number

    def whole(self, name: str, default: int, *, least: int = 0, most: float = float("inf")) -> int:
        """Return a whole number from `least` to `most`."""
        number = self.number(name, default, least=least, most=most)
        if not number.is_integer():
            raise CannotStart(f"{name} is {self.text(name)!r}: write a whole number.")
        return int(number)

    def choice(self, name: str, default: str, choices: Iterable[str]) -> str:
        """Return one of `choices`."""
        value, allowed = self.text(name, default), list(choices)
        if value not in allowed:
            raise CannotStart(f"{name} is {value!r}: write one of {', '.join(allowed)}.")
        return value

    def items(self, name: str) -> list[str]:
        """Return the items of a comma-separated value, without surrounding spaces; an empty list if it is not set."""
        return [item.strip() for item in self.text(name).split(",") if item.strip()]

    def some_of(self, name: str, choices: Iterable[str]) -> list[str]:
        """Return the items of a comma-separated value, each one of `choices`; an empty list if it is not set."""
        items, allowed = self.items(name), list(choices)
        for item in items:
            if item not in allowed:
                raise CannotStart(f"{name} has {item!r}: write some of {', '.join(allowed)}, separated by commas.")
        return items

    def networks(self, name: str) -> list[IPv4Network | IPv6Network]:
        """Return the networks of a comma-separated value like `10.1.0.0/16, fd00::/8`; none if it is not set."""
        try:
            return [ip_network(item) for item in self.items(name)]
        except ValueError as error:
            raise CannotStart(f"{name}: {error}. Write networks like 10.1.0.0/16, separated by commas.") from None

    def pairs(self, name: str) -> dict[str, str]:
        """Return the pairs of a comma-separated value like `a=b, c=d`; none if it is not set."""
        pairs: dict[str, str] = {}
        for item in self.items(name):
            key, _, value = (part.strip() for part in item.partition("="))
            if not key or not value:
                raise CannotStart(f"{name} has {item!r}: write pairs like name=value, separated by commas.")
            if key in pairs:
                raise CannotStart(f"{name} has {key!r} twice: write each name once.")
            pairs[key] = value
        return pairs

    def url(self, name: str, schemes: Iterable[str]) -> str:
        """Return a URL with one of `schemes` and a host; "" if it is not set."""
        value, allowed = self.text(name), list(schemes)
        try:
            parts = urlsplit(value)
            plain = not parts.query and not parts.fragment  # a path is added to it
            good = not value or (parts.scheme in allowed and parts.hostname and parts.port != 0 and plain)
        except ValueError:  # a bracket that is not closed, a port that is not a number
            good = False
        if not good:  # the value is not repeated in the message: a URL may contain a password
            raise CannotStart(f"{name} is not a valid URL: write one like {allowed[0]}://host.")
        return value

    def mailbox(self, name: str) -> str:
        """Return an e-mail address, alone or as `Name <address>`; "" if it is not set."""
        value = self.text(name)
        if value and not _MAILBOX.fullmatch(value):
            raise CannotStart(
                f"{name} is {value!r}: write an address like site@example.org or Site <site@example.org>."
            )
        return value

    def path(self, name: str, default: Path) -> Path:
        """Return a path. A relative one is below the folder of `manage.py`."""
        return (ROOT / Path(self.text(name, str(default))).expanduser()).resolve()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment() -> Environment:
    """Return the environment of this process, which overrides its `.env` file.

    `AGENTSITE_ENV_FILE` names another file than the `.env` beside `manage.py`. A missing file is ignored.
    """
    file = ROOT / os.environ.get("AGENTSITE_ENV_FILE", ".env")
    return Environment({**_read_file(file), **{name: value for name, value in os.environ.items() if value.strip()}})


def _read_file(file: Path) -> dict[str, str]:
    if not file.is_file():
        return {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotStart(f"{file} cannot be read ({error}): correct or remove it.") from None
    values = {}
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            name, value = _read_line(line, f"{file}, line {number}")
            values[name] = value
    return values


def _read_line(line: str, where: str) -> tuple[str, str]:
    """Return name and value of a line `NAME=value`, without an `export` before it and quotes around the value."""
    name, equals, value = line.strip().removeprefix("export ").partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name.isidentifier():
        raise CannotStart(f"{where} is not a setting: write NAME=value, or begin a comment with #.")
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return name, value


def _span(least: float, most: float) -> str:
    return f"of at least {least:g}" if most == float("inf") else f"from {least:g} to {most:g}"
