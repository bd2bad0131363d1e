"""The program of a child process that draws: `python -m conversations.pictures.child <id of the parent>`.

It answers each line of its input, `{"source": ..., "theme": ...}`, with one line, `{"svg": ...}` or `{"refused": ...}`,
and ends with its input. Its first line, `{}`, says that it is ready. It knows no Django, no settings and no secrets.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys

from agents.plugins.shell.tree import die_with_parent
from conversations.pictures.mermaid import TOO_LARGE, NotDrawn, draw, load

MEMORY = 512 * 2**20
"""Bytes of address space. The largest drawing that the library allows itself takes a quarter of it."""
OPEN_FILES = 64
NICE = 10
"""Pages go first."""


def main(parent: int) -> None:
    """Draw until the input ends. Raises ProcessLookupError if the parent has ended by now."""
    die_with_parent(parent=parent)
    os.nice(NICE)
    load()
    for limit, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
    ):
        with contextlib.suppress(ValueError, OSError):  # not every system has every limit
            resource.setrlimit(limit, (most, most))
    _say({})
    for line in sys.stdin.buffer:
        _say(_answer(**json.loads(line)))


def _answer(source: str, theme: str) -> dict[str, str]:
    try:
        return {"svg": draw(source, "dark" if theme == "dark" else "light")}
    except NotDrawn as refused:
        return {"refused": str(refused)}
    except MemoryError:
        return {"refused": TOO_LARGE}


def _say(answer: dict[str, str]) -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
