"""Labels of paths: how they stand in a list of choices, so that no two look the same and nothing in them is hidden."""

from __future__ import annotations

import re

from agents.engine.unseen import unseen_at

_ESCAPED = re.compile(r"\\(\\|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_EDGES = re.compile(r"\A +| +\Z|(?<= ) +")


def label_of(path: str) -> str:
    """Return the path, with escapes for what cannot be seen, for blanks that would get lost, and for the backslash."""
    hidden = set(unseen_at(path)) | {at for blank in _EDGES.finditer(path) for at in range(*blank.span())}
    return "".join(_escaped(each) if at in hidden or _is_odd(each) else each for at, each in enumerate(path))


def path_of(label: str) -> str:
    """Return the path that has this label."""
    return _ESCAPED.sub(lambda found: "\\" if found[1] == "\\" else chr(int(found[1][1:], 16)), label)


def _is_odd(character: str) -> bool:
    return character == "\\" or not character.isprintable()


def _escaped(character: str) -> str:
    if character == "\\":
        return "\\\\"
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
