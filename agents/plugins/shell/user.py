"""The user that a root worker runs commands as: their folders belong to it, and nothing else on the machine does."""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from contextlib import suppress

from agents.plugins.shell import tree

USER = 65530
"""The default number of this user and its group. No distribution gives it to anybody: it is above the dynamic users of
systemd (61184 to 65519) and below nobody (65534), see https://systemd.io/UIDS-GIDS/."""
MEETING_POINT = "/tmp"  # noqa: S108 - covered, and only for the process that becomes the user
"""Where this user finds the folder. It cannot reach the folder itself, which lies in folders that admit only root. Any
folder that exists would do; bubblewrap needs this one anyway."""
_LEVELS = 100
"""Levels of folders that are handed over. Further down is only what a command nested, and that is its own already."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000
"""From linux/sched.h and linux/mount.h."""
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def hand_over(folder: str, user: int) -> None:
    """Give the folder and everything in it to this user: what tools, uploads, a restore or an earlier version left.

    Commands may be changing it meanwhile, so each entry is reached by descriptor, and no link is followed. A file with
    several names is left as it is: another name may be outside. Raises OSError if the folder itself cannot be given.
    """
    descriptor = os.open(folder, _FOLDER)
    try:
        status = os.fstat(descriptor)
        _hand_over_below(descriptor, user, status.st_dev, _LEVELS)
        if status.st_uid != user:
            os.fchown(descriptor, user, user)
    except OSError as error:
        raise OSError(error.errno, f"its folder cannot be given to user {user}: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _hand_over_below(folder: int, user: int, device: int, levels: int) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # it is gone, or something else by now
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and status.st_dev == device and levels > 1:
                    below = os.open(entry.name, _FOLDER, dir_fd=folder)
                    try:
                        _hand_over_below(below, user, device, levels - 1)
                    finally:
                        os.close(below)
                if status.st_uid != user and status.st_dev == device and not _has_other_names(status):
                    os.chown(entry.name, user, user, dir_fd=folder, follow_symlinks=False)


def _has_other_names(status: os.stat_result) -> bool:
    return not stat.S_ISDIR(status.st_mode) and status.st_nlink > 1


def become(user: int, folder: str, parent: int) -> None:
    """Turn this process of root into one of this user, that finds the folder at MEETING_POINT. Raises OSError.

    Called between fork and exec; `parent` is the process that forked. The mount is seen by this process and its
    descendants only, and ends with them.
    """
    for stream in (1, 2):
        os.fchown(stream, user, user)  # else the command could not open /dev/stdout and /dev/stderr
    if _libc is None:
        raise OSError("only Linux has namespaces of mounts")
    _check(_libc.unshare(_CLONE_NEWNS))
    _check(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None))
    source, target = os.fsencode(folder), os.fsencode(MEETING_POINT)
    _check(_libc.mount(source, target, None, ctypes.c_ulong(_MS_BIND | _MS_REC), None))
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    tree.die_with_parent(parent=parent)  # the kernel forgets it when a process changes its user


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
