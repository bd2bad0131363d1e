"""Memory that the processes of a command share, or take faster than they can be listed: its control group counts it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agents.plugins.shell import cgroup, probe
from agents.plugins.shell.tools import run
from tests.plugins.calls import Desk

SHARED = """
import mmap, os, time
shared = mmap.mmap(-1, 900 * 2**20)
for at in range(0, len(shared), 4096):
    shared[at] = 1
for _ in range(3):
    if not os.fork():
        for at in range(0, len(shared), 4096):
            shared[at] = 2
        time.sleep(1)
        os._exit(0)
for _ in range(3):
    os.wait()
print("done")
"""
RUSH = "for n in $(seq 12); do python3 -c 'x = bytes(512 * 2**20); y = bytearray(x)' & done; wait; echo late"


@pytest.fixture
def place() -> Path:
    """Where commands get groups. A machine may have none to give: the watch of `test_hoards` is all there is then."""
    found = next(cgroup._places(), None)
    if found is None or probe.sandbox() is None:
        pytest.skip("this machine has no control groups to give")
    return found[0]


@pytest.mark.usefixtures("place")
async def test_what_processes_share_counts_once(desk: Desk) -> None:
    result = await desk.call(run, command=f"python3 -c '{SHARED}'")
    assert result["stdout"] == "done\n"
    assert "note" not in result


@pytest.mark.usefixtures("place")
async def test_a_rush_of_processes_is_ended(desk: Desk) -> None:
    """Each stays below its own limit, and the shell would go on after the kernel ended one of them."""
    result = await desk.call(run, command=f"{RUSH}; sleep 100")
    assert result["note"] == "Ended: it used more than 2 GiB of memory."


async def test_no_group_is_left(desk: Desk, place: Path) -> None:
    """Neither a command's own, nor that of a supervisor that was killed."""
    killed = await asyncio.create_subprocess_exec("true")
    await killed.wait()
    (place / f"agentsite-{killed.pid}").mkdir()
    await desk.call(run, command="true")
    assert _abandoned(place) == []


def _abandoned(place: Path) -> list[Path]:
    return [
        left for left in place.glob("agentsite-*") if not Path("/proc", left.name.removeprefix("agentsite-")).exists()
    ]


def test_a_worker_in_a_subgroup_of_its_unit_makes_groups_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As systemd lays it out with Delegate= and DelegateSubgroup=. Only the kernel's own files are missing here."""
    unit = tmp_path / "mounted" / "agentsite.service"
    (unit / "worker").mkdir(parents=True)
    own, mounts = tmp_path / "cgroup", tmp_path / "mountinfo"
    own.write_text("4:pids:/\n0::/system.slice/agentsite.service/worker\n")
    mounts.write_text(
        f"30 20 0:27 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
        f"31 20 0:28 /system.slice {tmp_path}/mounted rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
    )
    monkeypatch.setattr(cgroup, "_OWN", own)
    monkeypatch.setattr(cgroup, "_MOUNTS", mounts)
    assert list(cgroup._places()) == []  # the unit has no controllers
    (unit / "cgroup.controllers").write_text("cpu memory pids\n")
    (unit / "cgroup.subtree_control").write_text("")
    assert list(cgroup._places()) == []  # nobody could be moved into a group there
    (unit / "cgroup.procs").touch()
    assert list(cgroup._places()) == [(unit, cgroup._V2)]
    assert (unit / "cgroup.subtree_control").read_text() == "+memory"
