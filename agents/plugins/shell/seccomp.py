"""System calls that sandboxed commands do not get, as a program for seccomp: seccomp(2).

Keys: whoever has the worker's number could use the keys of its user (see `keys`). io_uring: it carries out other calls
on its own, past this program. Sockets, but for the kinds that a namespace of networks isolates: from a virtual machine,
AF_VSOCK reaches its host. Where a single call does all that sockets do (socketcall), the kind cannot be seen.
"""

from __future__ import annotations

import errno
import platform
import struct
import sys
from collections.abc import Sequence
from typing import NamedTuple


class _Way(NamedTuple):
    """A way in which programs may call the kernel: its number (AUDIT_ARCH in linux/audit.h), and those of the calls
    (syscall.tbl). The two calls before keyctl are add_key and request_key, everywhere.
    """

    architecture: int
    keyctl: int
    socket: int
    socketcall: int | None = None


_WAYS_BY_MACHINE = {
    "x86_64": (_Way(0xC000003E, 250, 41), _Way(0x40000003, 288, 359, 102)),
    "aarch64": (_Way(0xC00000B7, 219, 198), _Way(0x40000028, 311, 281, 102)),
    "riscv64": (_Way(0xC00000F3, 219, 198), _Way(0x400000F3, 219, 198)),
    "loongarch64": (_Way(0xC0000102, 219, 198),),
    "ppc64le": (_Way(0xC0000015, 271, 326, 102),),
}
"""By the kind of processor, the programs' own way first, then the 32-bit one."""
_WAYS = _WAYS_BY_MACHINE.get(platform.machine(), ()) if sys.maxsize > 2**32 else ()
KEYCTL = _WAYS[0].keyctl if _WAYS else None
"""The number of the system call keyctl, for which the C library has no function; None if it is not known here."""
_IO_URING = (425, 426, 427)
"""The same everywhere."""
_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK, from linux/socket.h."""
_X32 = 0x40000000
"""The bit that marks the system calls of a third kind of program on x86_64. It is in no other number."""
_LOAD, _AND, _IF_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW = 0x7FFF0000
_MISSING, _NO_FAMILY = 0x00050000 | errno.ENOSYS, 0x00050000 | errno.EAFNOSUPPORT
"""From linux/bpf_common.h, and linux/seccomp.h: instructions, where the data is, and what is returned."""

_Instruction = tuple[int, int, int, int]


def program() -> bytes:
    """Return the program. All calls in an unknown way are refused."""
    ways = [instruction for way in _WAYS for instruction in _of_way(way)]
    return b"".join(struct.pack("=HBBI", *each) for each in [*ways, (_RETURN, 0, 0, _MISSING)])


def _of_way(way: _Way) -> list[_Instruction]:
    """Return the part for one way. The second and third numbers say how many to skip if it is equal, and if not."""
    missing = [way.keyctl - 2, way.keyctl - 1, way.keyctl, *_IO_URING]
    if way.socketcall:
        missing.append(way.socketcall)
    families = [(_LOAD, 0, 0, _FIRST_ARGUMENT), *_returning(_FAMILIES, _ALLOW), (_RETURN, 0, 0, _NO_FAMILY)]
    calls = [
        (_LOAD, 0, 0, _NUMBER),
        (_AND, 0, 0, 0xFFFFFFFF ^ _X32),
        *_returning(missing, _MISSING),
        (_IF_EQUAL, 0, len(families), way.socket),
        *families,
        (_RETURN, 0, 0, _ALLOW),
    ]
    return [(_LOAD, 0, 0, _ARCHITECTURE), (_IF_EQUAL, 0, len(calls), way.architecture), *calls]


def _returning(values: Sequence[int], answer: int) -> list[_Instruction]:
    """Return the instructions that answer so if what was loaded is one of these values."""
    return [each for value in values for each in ((_IF_EQUAL, 0, 1, value), (_RETURN, 0, 0, answer))]
