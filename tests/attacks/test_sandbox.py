"""Commands in the sandbox that try to reach the machine: of whoever runs the tests, and, if that is root, of a user."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.plugins.shell import sandbox

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
    if not sandbox.is_available():
        missing = "bubblewrap does not work here"
        pytest.fail(missing) if request.config.getoption("--services", default=False) else pytest.skip(missing)
    other = request.param == "as another user"
    if other and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace-7"
        workspace.mkdir()
        if other:
            os.chown(folder, NOBODY, NOBODY)
            os.chown(workspace, NOBODY, NOBODY)

        def run(command: str) -> str:
            shell = ["/bin/bash", "-c", command]
            who: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if other else {}
            with sandbox.command_line(sandbox.box(workspace), shell) as (argv, inherited):
                ended = subprocess.run(argv, pass_fds=inherited, capture_output=True, check=False, **who)
            return f"{ended.stdout.decode()}{ended.stderr.decode()}"

        yield run


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


def test_ordinary_use_goes_on(attack: Attack) -> None:
    """Programs that look at other processes and at themselves, pipes that the shell names, memory that is shared."""
    told = attack(
        "echo hello > made; cat made; diff <(echo a) <(echo a) && echo same; cat /proc/self/comm;"
        " ps -e > /dev/null && python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))'"
    )
    assert told.split("\n") == ["hello", "same", "cat", "[1, 2]", ""]
