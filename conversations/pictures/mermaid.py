"""Mermaid diagrams as SVG: the one module that knows `mmdr`, which draws them. It runs in child processes only.

Its backend `merman` is meant for this: it limits its own work, and writes no HTML into pictures. The other one lets
scripts through.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import version

from conversations.pictures.styles import readable
from conversations.pictures.svg import Unsafe, checked
from conversations.pictures.theme import Theme, css, directive

TOO_LARGE = "The diagram is too large to draw."
BACKEND = "merman"
VERSION = f"mmdr {version('mmdr')} {BACKEND} 1"
"""What draws. The last number is our own: it grows when the look changes."""
SOURCE_MOST = 20_000
"""The longest source that is drawn, in bytes of UTF-8: several times what fits on a screen."""

PICTURE_MOST = 4_000_000
"""Characters of a picture. The largest that 20 kB of source made in tests has a third of it."""

_FRONT_MATTER = re.compile(r"\A\s*---[ \t]*\n(.*?)\n---[ \t]*\n", re.DOTALL)
_TITLE = re.compile(r"^title:([^\n]*)$", re.MULTILINE)
_QUOTES = " '\""
_DIRECTIVE = re.compile(r"%%\{.*?\}%%", re.DOTALL)
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_PREFIX = re.compile(r"^Diagram parse error \([^)]*\): ")
_LIMIT = re.compile(r"resource limit|safety limit|materialization limit")
_POSITION = re.compile(r" at (\d+)$")
REASON_MOST = 200
"""Characters of a reason: it may repeat a line of the source."""


class NotDrawn(Exception):
    """The diagram cannot be drawn. The message is for the reader, in one sentence."""


def load() -> None:
    """Load the library, which takes a tenth of a second and 25 MB. Only child processes do."""
    import mmdr  # noqa: F401


def draw(source: str, theme: Theme) -> str:
    """Return a diagram as SVG, in the site's look and with its size in pixels. Raises NotDrawn."""
    import mmdr  # see load()

    if len(source.encode()) > SOURCE_MOST:
        raise NotDrawn(f"The source is longer than {SOURCE_MOST // 1000} kB.")
    front, body = _parts(source)
    try:
        drawn = mmdr.render(front + directive(theme) + body, backend=BACKEND).svg()
        picture = checked(drawn, css(theme))
    except ValueError as error:
        raise NotDrawn(_reason(str(error), front.count("\n"), body)) from error
    except Unsafe as error:
        raise NotDrawn(f"The picture is not shown, because {error}.") from error
    if len(picture) > PICTURE_MOST:
        raise NotDrawn(TOO_LARGE)
    return picture


def _parts(source: str) -> tuple[str, str]:
    """Return the front matter and the rest, without settings of the author. Each line keeps its number."""
    text = _NOT_XML.sub("\ufffd", source.replace("\r\n", "\n").replace("\r", "\n"))
    while _DIRECTIVE.search(text):  # what is left when one is taken out may be another
        text = _DIRECTIVE.sub(lambda found: "\n" * found[0].count("\n"), text)
    text = readable(text)
    front = _FRONT_MATTER.match(text)
    return (_titled(front), text[front.end() :]) if front else ("", text)


def _titled(front: re.Match[str]) -> str:
    """Return front matter that holds the title only, in as many lines."""
    found = _TITLE.search(front[1])
    title = f"title: {json.dumps(found[1].strip(_QUOTES))}" if found else "{}"
    return f"---\n{title}" + "\n" * (front[0].count("\n") - 2) + "---\n"


def _reason(error: str, above: int, body: str) -> str:
    """Return why a diagram was not drawn, as a sentence: what the library says, without its own names for things.

    It names a place by its position in `body` without the blanks at the beginning. `above`: lines before that.
    """
    said = _PREFIX.sub("", " ".join(error.split()))
    if _LIMIT.search(said):
        return TOO_LARGE
    if said.startswith("No Mermaid diagram type"):
        return "The source does not begin with a kind of diagram that can be drawn."
    if at := _POSITION.search(said):
        position = int(at[1]) + len(body) - len(body.lstrip())
        said = f"Line {above + body.count(chr(10), 0, position) + 1}: {said[: at.start()]}"
    cut = said if len(said) <= REASON_MOST else f"{said[:REASON_MOST]}\u2026"
    return cut[:1].upper() + cut[1:].rstrip(".") + "."
