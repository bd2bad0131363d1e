"""Reloading: while somebody develops an app, `serve --reload` restarts the site's processes when its code changes."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from django.apps import apps

from agentsite.env import ROOT
from agentsite.preparation import Say
from conversations.worker.children import Child, Family

SUFFIXES = (".py", ".html", ".css", ".js")


class Reloader:
    """Restarts these children of the family when a file of the site, or of one of its apps, has changed.

    Code that cannot be loaded restarts nothing. The person at the terminal is told what happens. A worker lets running
    tools finish first, for `patience_seconds` at most; a turn that is cut off goes on in the new one.
    """

    def __init__(self, family: Family, children: Sequence[Child], say: Say, patience_seconds: float) -> None:
        self._family, self._children, self._say, self._patience = family, children, say, patience_seconds
        self._folders = list(_folders())
        self._seen = self._look()

    def __call__(self) -> None:
        """Look whether anything has changed, and restart the children if it has."""
        now = self._look()
        if now == self._seen:
            return
        changed = sorted({path for path, _ in now ^ self._seen})
        self._seen = now
        self._say(f"Changed: {', '.join(map(_short, changed[:3]))}{', ...' if changed[3:] else ''}")
        why = _broken()
        if why and not self._family.stopping:  # Ctrl-C in a terminal ends the check too
            self._say(f"Not restarted, because the site would not start:\n{why}")
        if why or self._family.stopping:
            return
        self._family.restart(self._children, self._patience)
        if not self._family.stopping:
            self._say("Restarted.")

    def _look(self) -> frozenset[tuple[Path, int]]:
        """Return the files with the time of their last change."""
        files = (path for folder in self._folders for path in folder.rglob("*") if path.suffix in SUFFIXES)
        return frozenset((path, _changed_at(path)) for path in (*files, ROOT / ".env"))


def _folders() -> Iterator[Path]:
    """Yield the folders with the code of the site and its apps, other than installed packages."""
    installed = Path(sysconfig.get_path("purelib"))
    yield from (ROOT / "agentsite", ROOT / "templates")
    for config in apps.get_app_configs():
        folder = Path(config.path)
        if not folder.is_relative_to(installed):
            yield folder


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # it was removed, or is being replaced
        return 0


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def _broken() -> str:
    """Return why the site would not start with the code as it is now; "" if it would."""
    command = [sys.executable, "manage.py", "check"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return checked.stderr.strip() if checked.returncode else ""
