"""Keys that the kernel keeps, such as those of encrypted folders and Kerberos: commands must not use the worker's.

Every command gets an empty session keyring instead of the worker's. But whoever has the worker's number may also link
the keyrings of its user, and use what is in them. In a sandbox, therefore, the system calls for keys do not exist: see
`seccomp`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

from agents.plugins.shell.seccomp import KEYCTL

_JOIN_SESSION_KEYRING = 1
"""From linux/keyctl.h."""
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def leave_keyring() -> None:
    """Give this process an empty session keyring: it would inherit the worker's, with keys that the worker may use.

    Raises OSError if the kernel has none to give. Does nothing where nobody may have keyrings, or KEYCTL is not known.
    """
    if _libc is None or KEYCTL is None or _libc.syscall(KEYCTL, _JOIN_SESSION_KEYRING, None) >= 0:
        return
    if (number := ctypes.get_errno()) not in (errno.ENOSYS, errno.EPERM):
        raise OSError(number, f"no keyring: {os.strerror(number)}")
