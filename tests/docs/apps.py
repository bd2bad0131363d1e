"""The apps that the documentation builds, taken from its pages as they stand, and checked as apps of others are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.agentsite.processes import ROOT


@dataclass(frozen=True)
class DocumentedApp:
    """An app that a page of the documentation builds. `name`: that of its package."""

    page: Path
    name: str

    @property
    def text(self) -> str:
        """The page."""
        return self.page.read_text(encoding="utf-8")

    @property
    def blocks(self) -> list[tuple[str, str]]:
        """The blocks of code whose first line names the file that they belong to; several of one may follow another."""
        named = rf"^```(?:python|html)\n(?:# |\{{# )({self.name}/\S+?)(?: #\}})?\n(.*?)^```$"
        return re.findall(named, self.text, re.MULTILINE | re.DOTALL)

    def build(self, folder: Path) -> dict[str, str]:
        """Write the app below `folder`; the environment by which a site has it."""
        files: dict[str, str] = {f"{self.name}/__init__.py": ""}
        for name, code in self.blocks:
            files[name] = files.get(name, "") + code
        for name, code in files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(code, encoding="utf-8")
        return {"PYTHONPATH": str(folder), "AGENTSITE_APPS": self.name}

    def tests(self, folder: Path) -> str:
        """What its own tests say, in an empty folder, with nothing of Django set up."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([self.build(folder)["PYTHONPATH"], str(ROOT)])}
        environment.pop("DJANGO_SETTINGS_MODULE", None)
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error"]
        return self._run(folder, environment, "pytest", *options, f"{self.name}/tests.py")

    def types(self, folder: Path) -> str:
        """What mypy says in its strict mode, with Agentsite as an installed package: what it exports has types."""
        self.build(folder)
        options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={folder}/cache"]
        return self._run(folder, {**os.environ, "MYPYPATH": str(ROOT)}, "mypy", *options, self.name)

    def _run(self, folder: Path, environment: dict[str, str], *command: str) -> str:
        told = subprocess.run(
            [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        return told.stdout + told.stderr


STOCK = DocumentedApp(ROOT / "docs" / "extending.md", "stock")
CORNER = DocumentedApp(ROOT / "docs" / "workflows.md", "corner")
