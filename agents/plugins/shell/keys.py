"""Keys that the kernel keeps, such as those of encrypted folders and Kerberos: commands must not use the worker's.

Every command gets an empty session keyring instead of the worker's. But whoever has the worker's number may also link
the keyrings of its user, and use what is in them. In a sandbox, therefore, the system calls for keys do not exist.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Sequence

_KEYCTL_BY_MACHINE = {
    "x86_64": ((0xC000003E, 250), (0x40000003, 288)),
    "aarch64": ((0xC00000B7, 219), (0x40000028, 311)),
    "riscv64": ((0xC00000F3, 219), (0x400000F3, 219)),
    "loongarch64": ((0xC0000102, 219),),
    "ppc64le": ((0xC0000015, 271),),
    "s390x": ((0x80000016, 280), (0x00000016, 280)),
}
"""How programs may call the kernel, by the kind of processor: their own way first, then the 32-bit one. Each way has a
number (AUDIT_ARCH in linux/audit.h), and a number for keyctl (syscall.tbl). The two system calls before keyctl are
add_key and request_key, everywhere."""
_CALLS = _KEYCTL_BY_MACHINE.get(platform.machine(), ()) if sys.maxsize > 2**32 else ()
KEYCTL = _CALLS[0][1] if _CALLS else None
"""The number of the system call keyctl, for which the C library has no function; None if it is not known here."""
_JOIN_SESSION_KEYRING = 1
"""From linux/keyctl.h."""
_X32 = 0x40000000
"""The bit that marks the system calls of a third kind of program on x86_64. It is in no other number."""
_LOAD, _AND, _IF_EQUAL, _IF_AT_LEAST, _IF_ABOVE, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x25, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.ENOSYS
"""From linux/bpf_common.h, and linux/seccomp.h: instructions, where the data is, and what is returned."""
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def leave_keyring() -> None:
    """Give this process an empty session keyring: it would inherit the worker's, with keys that the worker may use.

    Raises OSError if the kernel has none to give. Does nothing where nobody may have keyrings, or KEYCTL is not known.
    """
    if _libc is None or KEYCTL is None or _libc.syscall(KEYCTL, _JOIN_SESSION_KEYRING, None) >= 0:
        return
    if (number := ctypes.get_errno()) not in (errno.ENOSYS, errno.EPERM):
        raise OSError(number, f"no keyring: {os.strerror(number)}")


def refusal() -> bytes:
    """Return the program for seccomp that refuses the system calls for keys, and all calls in an unknown way."""
    program = b"".join(_refusal(*each) for each in _CALLS)
    return program + _instructions((_RETURN, 0, 0, _REFUSE))


def _refusal(architecture: int, keyctl: int) -> bytes:
    """Return the part for one way of calling the kernel. The second and third numbers say how many to skip."""
    return _instructions(
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 0, 6, architecture),
        (_LOAD, 0, 0, _NUMBER),
        (_AND, 0, 0, 0xFFFFFFFF ^ _X32),
        (_IF_AT_LEAST, 0, 1, keyctl - 2),
        (_IF_ABOVE, 0, 1, keyctl),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    )


def _instructions(*each: Sequence[int]) -> bytes:
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in each)
