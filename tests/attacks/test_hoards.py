"""Commands that take more memory or disk than they may, in ways that the sizes of their processes do not show."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agents.engine.interfaces.services import Space
from agents.plugins.files.usage import ENTRIES, Usage, measure
from agents.plugins.shell import limits, usage
from agents.plugins.shell.tools import run
from tests.plugins.calls import Desk

MANY = 20_000
MEMORY_FILES = """
import os, time
kept = []
for number in range(5):
    kept.append(os.memfd_create("hoard"))
    for piece in range(9):
        os.write(kept[-1], bytes(64 * 2**20))
{then}
"""
"""Writes up to 2.8 GB into memory, slowly enough to be seen, and less than would take the machine down."""


@pytest.mark.parametrize("then", ["time.sleep(200)", "[os.fork() for _ in range(3)]; time.sleep(200)"])
async def test_memory_files_count(desk: Desk, then: str) -> None:
    result = await desk.call(run, command=f"python3 -c '{MEMORY_FILES.format(then=then)}'", timeout_seconds=300)
    assert result["note"] == "Ended: it used more than 2 GiB of memory."


async def test_one_memory_file_of_many_processes_counts_once(desk: Desk) -> None:
    held = "import os, time; f = os.memfd_create(chr(97)); os.write(f, bytes(400 * 2**20));"
    command = f"python3 -c '{held} [os.fork() for _ in range(4)]; time.sleep(1)'"
    assert "note" not in await desk.call(run, command=command)


@pytest.mark.parametrize(
    "fill",
    [
        "for n in $(seq 6); do fallocate -l 900M big$n; sleep 0.2; done; sleep 200",
        "mkdir -p a/b; for n in $(seq 6); do fallocate -l 900M a/b/$n; sleep 0.2; done; sleep 200",
        # files that were deleted while they are open have no name any more
        'for n in 3 4 5 6 7 8; do eval "exec $n>gone"; fallocate -l 900M gone; rm gone; sleep 0.2; done; sleep 200',
    ],
)
async def test_a_workspace_has_an_end(desk: Desk, fill: str) -> None:
    if usage._free(str(desk.workspace)) < 8 * 2**30:
        pytest.skip("the disk of this machine is too small")
    result = await desk.call(run, command=fill, timeout_seconds=300)
    assert result["note"].startswith("Ended: its folder grew beyond 4 GB")
    for file in desk.workspace.rglob("*"):
        file.unlink() if file.is_file() else None


async def test_so_does_the_number_of_its_files(desk: Desk) -> None:
    """Also for a command that goes on with what an earlier one left; to tidy up is allowed."""
    make = "python3 -c 'import pathlib; [pathlib.Path(f\"{0}/{{n}}\").touch() for n in range({1})]'"
    desk.services.most = Space(files=4_000)
    half = desk.services.most.files // 2
    made = " && ".join(f"mkdir {name} && {make.format(name, half)}" for name in ("a", "b"))
    result = await desk.call(run, command=f"{made}; sleep 200", timeout_seconds=300)
    assert result["note"].startswith("Ended: its folder grew beyond")
    assert "note" not in await desk.call(run, command="sleep 0.6; rm -r a && ls | wc -l; sleep 0.6")


async def test_an_ordinary_project_is_no_hoard(desk: Desk) -> None:
    """Hard links count once, links to outside not at all, and sparse files with their holes."""
    made = "fallocate -l 900M big; for n in $(seq 9); do ln big link$n; done; ln -s /usr usr; truncate -s 900M sparse"
    result = await desk.call(run, command=f"{made}; mkdir many; cd many; touch $(seq {MANY}); sleep 1; ls | wc -l")
    assert result["stdout"] == f"{MANY}\n"
    assert "note" not in result


def test_what_lies_outside_is_not_measured(tmp_path: Path) -> None:
    """A command swaps folders for links after they were seen, and before they are opened. The worker may be root."""
    inside, outside = tmp_path / "workspace", tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(bytes(2**20))
    folders = [inside / str(number) for number in range(2 * ENTRIES)]
    for folder in folders:
        folder.mkdir(parents=True)
    measuring = measure(os.fspath(inside))
    assert next(measuring) is None
    for folder in folders:
        folder.rmdir()
        folder.symlink_to(outside)
    (found,) = filter(None, measuring)
    assert found.bytes < 2**20


def test_a_disk_that_a_command_fills_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The site keeps some space, whatever is in the workspace. A disk that was full before does not end a command."""
    free = [limits.RESERVE * 3]
    monkeypatch.setattr(usage, "_free", lambda path: free[0])
    most = Usage(Space().bytes, Space().files)
    folder = usage.Folder(os.fspath(tmp_path), most)
    assert not folder.is_full(0, lambda: True)
    free[0] = limits.RESERVE - 1
    assert folder.is_full(0, lambda: False)
    beside = usage.Folder(os.fspath(tmp_path), most)  # on a disk that others have filled
    assert not beside.is_full(usage.SMALL, lambda: True)
    assert beside.is_full(usage.SMALL + 1, lambda: False)
    free[0] -= usage.SMALL + 1
    assert not beside.is_full(0, lambda: False)
    assert beside.is_full(0, lambda: True)


MAPPED = """
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for number in range(12):
    file = os.open("gone", os.O_RDWR | os.O_CREAT)
    os.unlink("gone")
    for piece in range(25):
        os.write(file, bytes(2**20))
    libc.mmap(None, 4096, 1, 1, file, 0)
    os.close(file)
time.sleep(200)
"""
SENT = """
import array, os, socket, time
pairs = [socket.socketpair() for _ in range(12)]
for here, there in pairs:
    file = os.open("gone", os.O_RDWR | os.O_CREAT)
    os.unlink("gone")
    for piece in range(25):
        os.write(file, bytes(2**20))
    here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))])
    os.close(file)
time.sleep(200)
"""


@pytest.mark.parametrize("hide", [MAPPED, SENT], ids=["mapped", "sent"])
async def test_deleted_files_that_nothing_lists_count(desk: Desk, hide: str) -> None:
    """Whatever the disk has lost may be theirs."""
    desk.services.most = Space(bytes=100 * 2**20)
    result = await desk.call(run, command=f"python3 -c '{hide}'", timeout_seconds=120)
    assert result["note"].startswith("Ended: its folder grew beyond 100 MB")


NEST = 'd=$(printf "%0250d"); for n in $(seq 40); do mkdir $d && cd $d || exit; done; fallocate -l 200M big; sleep 200'


async def test_folders_without_a_path_count(desk: Desk) -> None:
    desk.services.most = Space(bytes=100 * 2**20)
    result = await desk.call(run, command=NEST, timeout_seconds=120)
    assert result["note"].startswith("Ended: its folder grew beyond 100 MB")


async def test_so_do_folders_that_the_site_may_not_read(desk: Desk) -> None:
    desk.services.most = Space(bytes=100 * 2**20)
    result = await desk.call(run, command="mkdir a; fallocate -l 200M a/big; chmod 0 a; sleep 200", timeout_seconds=120)
    assert result["note"].startswith("Ended: its folder grew beyond 100 MB")


def test_a_folder_that_moves_while_it_is_measured_ends_that(tmp_path: Path) -> None:
    """From within it, its parent would be another one, outside."""
    inside, outside = tmp_path / "workspace" / "a" / "b", tmp_path / "outside"
    inside.mkdir(parents=True)
    for number in range(2 * ENTRIES):
        (inside / str(number)).touch()
    outside.mkdir()
    (outside / "secret").write_bytes(bytes(2**20))
    measuring = measure(os.fspath(tmp_path / "workspace"))
    assert next(measuring) is None
    inside.rename(outside / "b")
    (found,) = filter(None, measuring)
    assert found.bytes < 2**20
