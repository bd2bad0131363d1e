"""The sandbox that commands run in, made by bubblewrap: https://github.com/containers/bubblewrap.

Inside it there is no network, no other process, nothing of the machine except its programs, and one writable folder.
Bubblewrap 0.8 (2023) is the first release with all the options below. Without it, commands run without a sandbox.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

INSIDE = "/workspace"
"""The path of the workspace inside the sandbox: the same on every machine, it does not reveal the real path."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
"""The folders of the machine's programs, the only ones that a command can see."""
_ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime")
"""The files of /etc that programs need to be found, to start and to tell the time."""
_MEMORY_FOLDER = str(256 * 2**20)
"""The largest size in bytes of /tmp and of /dev/shm, which are kept in memory."""
_PROBE_SECONDS = 10


def box(workspace: Path) -> list[str]:
    """Return the start of a command line that runs the rest of it in a sandbox, which can write only to `workspace`."""
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
def is_available() -> bool:
    """Return whether commands can be sandboxed here. Each process tries it once, by running a command in a sandbox."""
    if not shutil.which("bwrap"):
        return False
    try:
        with tempfile.TemporaryDirectory() as folder:
            probe = [*box(Path(folder)), "/bin/sh", "-c", f"echo > {INSIDE}/written"]
            done = subprocess.run(probe, capture_output=True, timeout=_PROBE_SECONDS, check=False)
            return done.returncode == 0 and (Path(folder) / "written").exists()
    except (OSError, subprocess.TimeoutExpired):
        return False


def exposes(path: Path) -> bool:
    """Return whether a sandboxed command can read `path`, because it is below a folder of programs."""
    return any(path.resolve().is_relative_to(Path(folder).resolve()) for folder in (*_SYSTEM, *_ETC))


def _system() -> list[str]:
    """Return the options for the folders of programs: read-only, and links (/bin is often /usr/bin) as links."""
    options: list[str] = []
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            options += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            options += ["--ro-bind", str(folder), str(folder)]
    for file in _ETC:
        options += ["--ro-bind-try", file, file]
    return options
