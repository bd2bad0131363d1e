"""The app that `docs/extending.md` builds, taken from the page as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from tests.agentsite.processes import ROOT

PAGE = ROOT / "docs" / "extending.md"
NAMED = re.compile(r"^```(?:python|html)\n(?:# |\{# )(stock/\S+?)(?: #\})?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A block of code whose first line names the file that it belongs to; several of one file follow one another."""


def build(folder: Path) -> dict[str, str]:
    """Write the app below `folder`; the environment by which a site has it."""
    files: dict[str, str] = {"stock/__init__.py": ""}
    for name, code in NAMED.findall(PAGE.read_text(encoding="utf-8")):
        files[name] = files.get(name, "") + code
    for name, code in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code, encoding="utf-8")
    return {"PYTHONPATH": str(folder), "AGENTSITE_APPS": "stock"}
