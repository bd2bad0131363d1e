"""Commands that import files of a folder, as somebody runs them."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from django.core.management import CommandError, call_command


def imported_by(command: str, folder: Path) -> tuple[list[str], list[str]]:
    """What it prints, and what it complains of."""
    out, bad, ended = StringIO(), StringIO(), ""
    try:
        call_command(command, folder, stdout=out, stderr=bad)
    except CommandError as error:
        ended = str(error)
    lines = bad.getvalue().splitlines()
    files = "1 file" if len(lines) == 1 else f"{len(lines)} files"
    assert ended == (f"Could not import {files}; the reasons are above." if lines else "")
    return out.getvalue().splitlines(), lines
