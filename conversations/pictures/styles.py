"""The colours that an author gives to parts of a diagram: kept, with text on them that is readable in both themes."""

from __future__ import annotations

import re

DARK_TEXT, LIGHT_TEXT = "#1d1c1a", "#ffffff"
_STATEMENT = re.compile(r"^([ \t]*(?:style|classDef)[ \t]+\S+[ \t]+)([^\n;]*)", re.MULTILINE)
_TAKES_COLOUR = re.compile(r"^\s*(?:flowchart|graph|stateDiagram)", re.MULTILINE)
_HEX = re.compile(r"#(?:[0-9a-f]{3}|[0-9a-f]{6})")
_NAMED = {
    "aqua": "#00ffff", "beige": "#f5f5dc", "black": "#000000", "blue": "#0000ff", "coral": "#ff7f50",
    "crimson": "#dc143c", "cyan": "#00ffff", "gold": "#ffd700", "gray": "#808080", "green": "#008000",
    "grey": "#808080", "khaki": "#f0e68c", "lavender": "#e6e6fa", "lightblue": "#add8e6", "lightcoral": "#f08080",
    "lightcyan": "#e0ffff", "lightgray": "#d3d3d3", "lightgreen": "#90ee90", "lightgrey": "#d3d3d3",
    "lightpink": "#ffb6c1", "lightyellow": "#ffffe0", "lime": "#00ff00", "magenta": "#ff00ff", "navy": "#000080",
    "orange": "#ffa500", "palegreen": "#98fb98", "pink": "#ffc0cb", "plum": "#dda0dd", "purple": "#800080",
    "red": "#ff0000", "salmon": "#fa8072", "silver": "#c0c0c0", "skyblue": "#87ceeb", "teal": "#008080",
    "tomato": "#ff6347", "violet": "#ee82ee", "wheat": "#f5deb3", "white": "#ffffff", "yellow": "#ffff00",
}  # fmt: skip
"""The names of colours that models write."""


def readable(source: str) -> str:
    """Return the source with the text colour that fits in each `style` and `classDef`.

    A fill whose colour is not known here is left out, because nobody could say which text can be read on it; so are all
    in kinds of diagrams whose texts do not take a colour.
    """
    fills = bool(_TAKES_COLOUR.search(source))
    return _STATEMENT.sub(lambda found: found[1] + _with_text(found[2], fills=fills), source)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours ("#rrggbb"), as WCAG 2 defines it: from 1 to 21."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _with_text(properties: str, *, fills: bool) -> str:
    given = [each.strip() for each in properties.split(",")]
    fill = next((_colour(each.partition(":")[2]) for each in given if each.startswith("fill:")), None)
    kept = [each for each in given if not each.startswith(("fill:", "color:"))]
    if fill and fills:
        text = max(DARK_TEXT, LIGHT_TEXT, key=lambda colour: contrast(fill, colour))
        kept += [f"fill:{fill}", f"color:{text}"]
    return ",".join(kept or ["stroke-width:1px"])  # a statement without properties would be an error


def _colour(value: str) -> str | None:
    """Return a colour as "#rrggbb"; None if it is not known."""
    name = value.lower().replace("!important", "").strip()
    colour = _NAMED.get(name, name)
    if not _HEX.fullmatch(colour):
        return None
    return colour if len(colour) == 7 else "#" + "".join(2 * digit for digit in colour[1:])


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
