"""The sandbox that commands run in, made by bubblewrap: https://github.com/containers/bubblewrap.

Inside it there is no network, no other process, nothing of the machine except its programs, and one writable folder.
Bubblewrap 0.8 (2023) is the first release with all the options below. `probe` finds out whether it works here.

/proc is read-only: most of the kernel's settings in /proc/sys are the whole machine's, and bubblewrap leaves them
writable.

/proc/self/mountinfo would tell the path of the workspace on the machine: the kernel names the source of every mount,
except of those that cannot be reached from the root of whoever reads. So a command gets a namespace of mounts that none
of the mounts it sees belongs to: they stay in the namespace of bubblewrap's own process, which is hidden in turn.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agents.plugins.shell import seccomp
from agents.plugins.shell.user import MEETING_POINT

INSIDE = "/workspace"
"""The path of the workspace inside the sandbox: the same on every machine, it does not reveal the real path."""
PATH = "/usr/local/bin:/usr/bin:/bin"
"""The PATH of commands. Not the worker's own: its first folder may be the site's virtual environment, and an agent must
not install anything there."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
"""The folders of the machine's programs, the only ones that a command can see."""
_ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime")
"""The files of /etc that programs need to be found, to start and to tell the time."""
_KEYS = "/proc/keys"
"""The list of a user's keys, which is covered: commands cannot use them (see `keys`), but could read their names."""
_MEMORY_FOLDER = str(256 * 2**20)
"""The largest size in bytes of /tmp and of /dev/shm, which are kept in memory."""
_UNMOUNTING = (
    *("--tmpfs", "/proc/1", "--remount-ro", "/proc/1"),
    *("--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SYS_CHROOT", "--cap-add", "CAP_SETPCAP"),
)
"""Hides bubblewrap's own process, and lets _UNMOUNT do what it does. The capabilities are those of the sandbox only."""
_UNMOUNT = (
    'exec 3</ && exec unshare --mount --root=/proc/self/fd/3 --wd="$PWD"'
    " setpriv --ambient-caps=-all --inh-caps=-all --bounding-set=-all"
    """ sh -c 'exec "$@" 3<&-' sh "$@\""""
)
"""Opens a namespace of mounts, returns to the root of the one before, gives up all capabilities, and becomes the
command. `unshare` and `setpriv` are util-linux's: https://github.com/util-linux/util-linux."""


@dataclass(frozen=True)
class Sandbox:
    """A kind of sandbox. `user`: the user that commands of a root worker run as; None: they run as the worker's own.

    `unmounts`: whether /proc/self/mountinfo is empty, and so does not tell the path of the workspace.
    """

    user: int | None
    unmounts: bool

    def box(self, workspace: Path, start: str = INSIDE) -> list[str]:
        """Return the program and the options of a sandbox that can write only to `workspace`, for `command_line`.

        `start`: the path inside the sandbox of the folder in which the command starts.
        """
        return [
            shutil.which("bwrap") or "bwrap",
            *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *("--unshare-user", "--uid", "1000", "--gid", "1000", "--disable-userns"),
            *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-cgroup-try"),
            *("--unshare-uts", "--hostname", "workspace"),
            *_system(),
            *("--proc", "/proc", "--dev", "/dev", "--size", _MEMORY_FOLDER, "--tmpfs", "/dev/shm"),  # noqa: S108 - in the box
            *("--size", _MEMORY_FOLDER, "--tmpfs", "/tmp"),  # noqa: S108 - the box's own
            *("--bind", str(workspace) if self.user is None else MEETING_POINT, INSIDE, "--chdir", start),
            *(("--ro-bind", "/dev/null", _KEYS) if Path(_KEYS).exists() else ()),
            *(_UNMOUNTING if self.unmounts else ()),
            *("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/"),
        ]

    def inside(self, command: Sequence[str]) -> list[str]:
        """Return what to run inside the box so that it becomes `command`."""
        return ["/bin/sh", "-c", _UNMOUNT, "sh", *command] if self.unmounts else [*command]


def kinds(user: int) -> Iterator[Sandbox]:
    """Yield the kinds of sandbox that may work here, the best first. `user`: whom root runs commands as."""
    for unmounts in (True, False):
        yield Sandbox(None if os.geteuid() else user, unmounts)


@contextmanager
def command_line(box: Sequence[str], command: Sequence[str]) -> Iterator[tuple[Sequence[str], tuple[int, ...]]]:
    """Yield the command line that runs `command` in `box`, and the descriptors that it must inherit.

    The options are in a file: where a command can read the command line of its sandbox, that must not tell the path of
    the workspace. The file is in memory: a deleted one on the disk would count as the command's. Without a box, it is
    the command itself.
    """
    if not box:
        yield command, ()
        return
    program, *options = box
    with _in_memory(seccomp.program()) as refusal:
        options += ["--seccomp", str(refusal), ""]
        with _in_memory("\0".join(options).encode()) as arguments:
            yield [program, "--args", str(arguments), "--", *command], (arguments, refusal)


@contextmanager
def _in_memory(content: bytes) -> Iterator[int]:
    """Yield the descriptor of a file with this content, to be read from its beginning."""
    descriptor = os.memfd_create("bubblewrap")
    try:
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


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
