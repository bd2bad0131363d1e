"""The probe: whether commands can be sandboxed here. It runs one as commands are run, where the workspaces are."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from agents.plugins.shell import seccomp
from agents.plugins.shell.sandbox import INSIDE, PATH, Sandbox, kinds
from agents.plugins.shell.supervise import END_SECONDS, ENVIRONMENT, GRACE_SECONDS, HEADER, PROGRAM, Order
from agents.plugins.shell.user import USER

logger = logging.getLogger(__name__)
RETRY_SECONDS = 60.0
"""Seconds after a failure until it is tried again: the machine may have been busy, or its disk full."""
_SECONDS = 5
"""The time limit of the probe, for which other turns wait. It takes a tenth of a second, if the machine is idle."""
_SETTING = "/proc/sys/kernel/core_pattern"
"""A setting of the whole machine. Where a command can write it, it can have the kernel run a program as root."""
_WRITES = f"echo > {INSIDE}/written"
_SETS_NOTHING = f"""
    setting=$(cat {_SETTING}) && ! (printf %s "$setting" > {_SETTING}) 2> /dev/null ||
        {{ echo "a command could write {_SETTING}" >&2; exit 1; }}"""
"""It writes back the value that stands there."""
_HAS_NO_CAPABILITY = """
    [ "$(grep -Ec '^Cap(Inh|Prm|Eff|Bnd|Amb):[[:space:]]*0+$' /proc/self/status)" = 5 ] ||
        { echo "a command would have capabilities" >&2; exit 1; }"""
_SEES_NO_MOUNT = """
    [ -z "$(cat /proc/[0-9]*/mountinfo)" ] || { echo "a command could read where its workspace is" >&2; exit 1; }"""
_BUSY = "the machine was too busy to try it"


class Probe:
    """Finds the sandbox for workspaces in the folder `place`. `user`: whom root runs commands as."""

    def __init__(self, place: Path, user: int) -> None:
        self.why_not = ""
        self._place, self._user = place, user
        self._found: Sandbox | None = None
        self._next = float("-inf")
        self._lock = threading.Lock()

    def sandbox(self) -> Sandbox | None:
        """Return the sandbox that works here; None if none does, and `why_not` says why.

        What works is kept. A failure is tried again, but not before RETRY_SECONDS have passed.
        """
        with self._lock:
            if self._found is None and time.monotonic() >= self._next:
                self._found, self.why_not = self._find()
                self._next = time.monotonic() + RETRY_SECONDS
                if self.why_not:
                    logger.warning("commands are not sandboxed: %s", self.why_not)
            return self._found

    def _find(self) -> tuple[Sandbox | None, str]:
        """Return the best kind of sandbox that works; if none does, why the last one tried did not."""
        if not shutil.which("bwrap"):
            return None, "bubblewrap is not installed: there is no program bwrap"
        if seccomp.KEYCTL is None:
            return None, "on this kind of processor, commands cannot be kept from the keys of the worker"
        why_not = ""
        for kind in kinds(self._user):
            earlier, why_not = why_not, self._try(kind)
            if not why_not:
                if earlier:
                    logger.info("commands are sandboxed, but may read where their workspace is: %s", earlier)
                return kind, ""
            if why_not == _BUSY:
                break  # whoever asks cannot wait for another
        return None, why_not

    def _try(self, kind: Sandbox) -> str:
        """Return why this kind of sandbox does not work; "" if it does."""
        try:
            with tempfile.TemporaryDirectory(dir=self._place, prefix=".probe-") as name:
                why_not = _run(kind, Path(name))
                written = Path(name, "written")
                owner = os.geteuid() if kind.user is None else kind.user
                if not why_not and not (written.exists() and written.stat().st_uid == owner):
                    return "a command could not write to its workspace"
                return why_not
        except subprocess.TimeoutExpired:
            return _BUSY
        except OSError as error:
            return str(error)


_probe = Probe(Path(tempfile.gettempdir()), USER)


def keep_place(workspaces: Path, user: int) -> None:
    """Set where the workspaces are, and the user that commands of a root worker run as."""
    global _probe  # noqa: PLW0603 - a process has one site
    _probe = Probe(workspaces, user)


def sandbox() -> Sandbox | None:
    """Return the sandbox of this site's commands; None if there is none, and they have the rights of the worker."""
    return _probe.sandbox()


def why_not() -> str:
    """Return why `sandbox` found none when it last tried."""
    return _probe.why_not


def _run(kind: Sandbox, folder: Path) -> str:
    """Run the probe in this folder. Returns what failed, "" if nothing did. Raises OSError and TimeoutExpired."""
    script = _WRITES + _SETS_NOTHING + _HAS_NO_CAPABILITY + (_SEES_NO_MOUNT if kind.unmounts else "")
    order: Order = {
        "argv": kind.inside(["/bin/sh", "-c", script]),
        "env": {"PATH": PATH},
        "folder": str(folder),
        "place": None,
        "most": (2**30, 1000),
        "seconds": _SECONDS,
        "sandbox": kind.box(folder),
        "user": kind.user,
    }
    reader, writer = os.pipe()  # stays open: its end would end the command
    try:
        os.write(writer, json.dumps(order).encode() + b"\n")
        limit = _SECONDS + GRACE_SECONDS + END_SECONDS
        done = subprocess.run(
            PROGRAM, stdin=reader, capture_output=True, cwd="/", env=ENVIRONMENT, timeout=limit, check=False
        )
    finally:
        os.close(reader)
        os.close(writer)
    complaint, report = b"", b"{}"
    for letter, content in _frames(done.stdout):
        complaint += content if letter == b"e" else b""
        report = content if letter == b"r" else report
    ended = json.loads(report)
    if ended.get("stopped") == "time":
        return _BUSY
    return "" if ended.get("exit") == 0 else complaint.decode(errors="replace").strip() or "bubblewrap does not work"


def _frames(output: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the letter and the content of each of the supervisor's frames."""
    while len(output) >= HEADER.size:
        letter, length = HEADER.unpack_from(output)
        content, output = output[HEADER.size : HEADER.size + length], output[HEADER.size + length :]
        yield letter, content
