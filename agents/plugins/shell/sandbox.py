"""The sandbox that commands run in, made by bubblewrap: https://github.com/containers/bubblewrap.

Inside it there is no network, no other process, nothing of the machine except its programs, and one writable folder.
Bubblewrap 0.8 (2023) is the first release with all the options below. Without it, commands run without a sandbox.

/proc is read-only: most of the kernel's settings in /proc/sys are the whole machine's, and bubblewrap leaves them
writable. To the kernel, the commands of a root worker are root's, whatever their number inside.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
_SETTING = "/proc/sys/kernel/core_pattern"
"""A setting of the whole machine. Where a command can write it, it can have the kernel run a program as root."""
_PROBE = f'echo > {INSIDE}/written && setting=$(cat {_SETTING}) && ! (printf %s "$setting" > {_SETTING}) 2> /dev/null'
"""Succeeds if the workspace can be written and the setting cannot. It writes back the value that stands there."""
_PROBE_SECONDS = 10


def box(workspace: Path) -> list[str]:
    """Return the program and the options of a sandbox that can write only to `workspace`, for `command_line`."""
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
        *("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"),
    ]


@contextmanager
def command_line(box: Sequence[str], command: Sequence[str]) -> Iterator[tuple[Sequence[str], tuple[int, ...]]]:
    """Yield the command line that runs `command` in `box`, and the descriptors that it must inherit.

    The options are in a file: a command can read the command line of its sandbox, which must not tell the path of the
    workspace. Without a box, it is the command itself.
    """
    if not box:
        yield command, ()
        return
    program, *options = box
    with tempfile.TemporaryFile() as file:
        file.write("\0".join([*options, ""]).encode())
        file.seek(0)
        yield [program, "--args", str(file.fileno()), "--", *command], (file.fileno(),)


@cache
def is_available() -> bool:
    """Return whether commands can be sandboxed here. Each process tries it once, by running a command in a sandbox."""
    if not shutil.which("bwrap"):
        return False
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            command_line(box(Path(folder)), ["/bin/sh", "-c", _PROBE]) as (probe, inherited),
        ):
            done = subprocess.run(probe, pass_fds=inherited, capture_output=True, timeout=_PROBE_SECONDS, check=False)
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
