"""Commands in the sandbox that try to reach the machine: of whoever runs the tests, and, if that is root, of a user."""

from __future__ import annotations

import asyncio
import errno
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.engine.interfaces.services import Space
from agents.plugins.shell import keys, probe, process, sandbox, seccomp

NOBODY = 65534
SETTINGS = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/swappiness",
    "/proc/sys/fs/file-max",
    "/proc/sys/fs/suid_dumpable",
    "/proc/sys/net/core/somaxconn",
    "/proc/1/oom_score_adj",
    "/proc/self/oom_score_adj",
    "/proc/1/comm",
    "/proc/irq/default_smp_affinity",
    "/proc/sysrq-trigger",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/uevent_helper",
]
"""Files in which the kernel is told what to do."""

Attack = Callable[[str], str]


@pytest.fixture(params=["as we are", "as another user"])
def attack(request: pytest.FixtureRequest) -> Iterator[Attack]:
    """Run a command in a sandbox for a workspace named `workspace-7`, and return all that it printed."""
    kind = probe.sandbox()
    if kind is None:
        missing = f"there is no sandbox here: {probe.why_not()}"
        if request.config.getoption("--services", default=False):
            pytest.fail(missing)
        pytest.skip(missing)
    its = sandbox.Sandbox(None, unmounts=kind.unmounts)
    other = request.param == "as another user"
    if other and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace-7"
        workspace.mkdir()
        if other:
            os.chown(folder, NOBODY, NOBODY)
            os.chown(workspace, NOBODY, NOBODY)

        def as_we_are(command: str) -> str:
            ended = asyncio.run(process.run(process.shell(command), workspace, Space(), 60, lambda text: None))
            return f"{ended['stdout']}{ended['stderr']}"

        def as_another(command: str) -> str:
            """As the worker of another user does, who could not import what this process has imported."""
            who: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            shell = its.inside(["/bin/bash", "-c", command])
            with sandbox.command_line(its.box(workspace), shell) as (argv, inherited):
                ended = subprocess.run(
                    argv, pass_fds=inherited, capture_output=True, check=False, preexec_fn=keys.leave_keyring, **who
                )
            return f"{ended.stdout.decode()}{ended.stderr.decode()}"

        yield as_another if other else as_we_are


@pytest.mark.parametrize("path", SETTINGS)
def test_no_setting_of_the_kernel_is_written(attack: Attack, path: str) -> None:
    """It tries to write back the value that stands there, so that it harms no machine where it succeeds."""
    told = attack(f'value=$(cat {path}) && printf %s "$value" > {path} && echo WRITTEN')
    assert "WRITTEN" not in told


def test_no_file_of_proc_or_sys_can_be_opened_for_writing(attack: Attack) -> None:
    """All of them, not only those that are known to matter. Opening one changes nothing."""
    opened = attack(
        "find /proc /sys -type f -not -path '/proc/[0-9]*' 2>/dev/null | while read -r file;"
        ' do (exec 3<> "$file") 2>/dev/null && echo "OPENED $file"; done; echo done'
    )
    assert opened.strip() == "done"


def test_proc_cannot_be_made_writable_or_mounted_again(attack: Attack) -> None:
    told = attack(
        "mount -o remount,rw /proc; mount -t proc proc /tmp && echo MOUNTED;"
        " mount --bind /proc/sys /tmp && echo MOUNTED;"
        " unshare --user --mount --map-root-user true && echo NAMESPACE; unshare --mount true && echo NAMESPACE;"
        " touch /proc/sys/kernel/panic && echo WRITABLE"
    )
    assert not {"MOUNTED", "NAMESPACE", "WRITABLE"} & set(told.split())


def test_no_command_line_tells_where_the_workspace_is(attack: Attack) -> None:
    told = attack("cat /proc/*/cmdline /proc/*/environ | tr '\\0' ' '; ls -la /proc/*/fd /proc/*/cwd")
    assert "workspace-7" not in told


def test_nor_does_a_mount(attack: Attack) -> None:
    """Neither one of its own, nor of bubblewrap's process, nor of a thread, nor what the newest system calls tell."""
    told = attack(
        "cat /proc/*/mountinfo /proc/*/mounts /proc/*/mountstats /proc/*/task/*/mountinfo;"
        " for pid in 1 $$ self thread-self; do cat /proc/$pid/mountinfo; done"
    )
    assert "workspace-7" not in told
    asked = """
import ctypes, struct
call, room = ctypes.CDLL(None).syscall, ctypes.create_string_buffer(65536)
statmount, listmount, root, everything = 457, 458, 2**64 - 1, 0x7f
def request(mount, what=0):
    return ctypes.create_string_buffer(struct.pack("IIQQ", 24, 0, mount, what), 24)
found = call(listmount, request(root), room, ctypes.c_size_t(4096), 0)
for mount in struct.unpack_from(f"{max(found, 0)}Q", room):
    call(statmount, request(mount, everything), room, ctypes.c_size_t(65536), 0)
    print(room.raw.replace(bytes(1), b" ").decode("latin-1"))
print("asked")
"""
    told = attack(f"python3 -c '{asked}'")
    assert told.endswith("asked\n")
    assert "workspace-7" not in told


def test_it_gets_no_capability_on_the_way(attack: Attack) -> None:
    """The programs that hide the mounts have some, inside the box. The command has none, nor the next one it starts."""
    assert attack("grep -hc '^Cap.*[1-9a-f]$' /proc/self/status /proc/$$/status") == "0\n0\n"


def test_it_does_not_see_or_signal_bubblewrap(attack: Attack) -> None:
    assert attack("kill -9 1; ls -A /proc/1; echo alive") == "alive\n"


def test_it_has_no_keys(attack: Attack) -> None:
    """Neither a keyring of the worker's session, nor those of its user, which anybody with its number may link."""
    calls = ", ".join(
        f"call({seccomp.KEYCTL}, {arguments})" for arguments in ("0, -3, 0", "0, -4, 1", "1, 0", "8, -4, -3")
    )
    add = f"call({seccomp.KEYCTL} - 2, b'user', b'name', b'content', 7, -4)"
    told = attack(
        f"python3 -c \"call = __import__('ctypes').CDLL(None).syscall; print({calls}, {add})\"; cat /proc/keys"
    )
    assert told.splitlines()[0] == "-1 -1 -1 -1 -1"
    assert "keyring" not in told


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors call the kernel in one way")
def test_nor_in_another_way_to_call_the_kernel(attack: Attack) -> None:
    """As a 32-bit program does, in which any program can, and as one with 32-bit addresses does."""
    code = "53 b8 20 01 00 00 bb 00 00 00 00 b9 fd ff ff ff ba 01 00 00 00 cd 80 5b c3"  # keyctl(0, -3, 1) by int 0x80
    told = attack(f"""python3 -c '
import ctypes, mmap
memory = mmap.mmap(-1, 4096, prot=7)
memory.write(bytes.fromhex("{code}"))
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))())
print(ctypes.CDLL(None).syscall({seccomp.KEYCTL} | 0x40000000, 0, -3, 1))'""")
    assert told == f"-{errno.ENOSYS}\n-1\n"


def test_its_sockets_are_those_that_its_own_network_isolates(attack: Attack) -> None:
    """From a virtual machine, AF_VSOCK reaches its host. io_uring would make a socket past the filter."""
    families = "[1, 2, 10, 16, 40, 17, 38, 31]"  # UNIX, INET, INET6, NETLINK; VSOCK, PACKET, ALG, BLUETOOTH
    told = attack(f"""python3 -c '
import ctypes, errno
call = ctypes.CDLL(None, use_errno=True)
print([call.socket(kind, 2 if kind != 40 else 1, 0) >= 0 or ctypes.get_errno() for kind in {families}])
print(call.syscall(425, 4, 0), errno.errorcode[ctypes.get_errno()])'""")
    assert told == f"[True, True, True, True, {', '.join([str(errno.EAFNOSUPPORT)] * 4)}]\n-1 ENOSYS\n"


def test_ordinary_use_goes_on(attack: Attack) -> None:
    """Programs that look at other processes and at themselves, pipes that the shell names, memory that is shared."""
    told = attack(
        "echo hello > made; cat made; diff <(echo a) <(echo a) && echo same; cat /proc/self/comm;"
        " ps -e > /dev/null && python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))'"
    )
    assert told.split("\n") == ["hello", "same", "cat", "[1, 2]", ""]
