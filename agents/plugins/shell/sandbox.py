"""The box a command runs in, by bubblewrap: https://github.com/containers/bubblewrap.

In it there is no network, nobody else's process, nothing of the machine but its programs, and one folder to write to.
Bubblewrap 0.8 (2023) is the first release that has all the options below. Without a working one, commands run unboxed.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

INSIDE = "/workspace"
"""Where a command finds its folder: the same on every machine, and silent about where that really is."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
"""The programs of the machine: all that can be seen of it."""
_ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime")
"""What programs need of /etc to be found, to start and to tell the time."""
_MEMORY_FOLDER = str(256 * 2**20)
"""Bytes that /tmp and /dev/shm may each take: they lie in memory."""
_PROBE_SECONDS = 10


def box(workspace: Path) -> list[str]:
    """The start of a command line that runs the rest of it in a box, `workspace` being all it can write to."""
    return [
        shutil.which("bwrap") or "bwrap",
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--unshare-user", "--uid", "1000", "--gid", "1000", "--disable-userns"),
        *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-cgroup-try"),
        *("--unshare-uts", "--hostname", "workspace"),
        *_system(),
        *("--proc", "/proc", "--dev", "/dev", "--size", _MEMORY_FOLDER, "--tmpfs", "/dev/shm"),  # noqa: S108 - in the box
        *("--size", _MEMORY_FOLDER, "--tmpfs", "/tmp"),  # noqa: S108 - the box's own
        *("--bind", str(workspace), INSIDE, "--chdir", INSIDE),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        "--",
    ]


@cache
def works() -> bool:
    """Whether commands can be boxed here: tried once in each process, by boxing one."""
    if not shutil.which("bwrap"):
        return False
    try:
        with tempfile.TemporaryDirectory() as folder:
            probe = [*box(Path(folder)), "/bin/sh", "-c", f"echo > {INSIDE}/written"]
            done = subprocess.run(probe, capture_output=True, timeout=_PROBE_SECONDS, check=False)
            return done.returncode == 0 and (Path(folder) / "written").exists()
    except (OSError, subprocess.TimeoutExpired):
        return False


def shows(path: Path) -> bool:
    """Whether a boxed command can read `path`: it lies among the programs of the machine."""
    return any(path.resolve().is_relative_to(Path(folder).resolve()) for folder in (*_SYSTEM, *_ETC))


def _system() -> list[str]:
    """The folders of programs, read-only; links among them (on most systems /bin is /usr/bin) as links."""
    options: list[str] = []
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            options += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            options += ["--ro-bind", str(folder), str(folder)]
    for file in _ETC:
        options += ["--ro-bind-try", file, file]
    return options
