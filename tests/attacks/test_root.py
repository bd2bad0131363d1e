"""What a root worker must not do for a command: run it as root, or write for it what root alone may write."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.plugins.files.box import Box
from agents.plugins.files.tools import edit_file, write_file
from agents.plugins.shell import sandbox
from agents.plugins.shell.tools import run
from agents.plugins.shell.user import USER, hand_over
from tests.plugins.calls import Desk, idle, running, soon

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only a root worker has a user of its own for commands"),
    pytest.mark.usefixtures("boxed"),
]


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of programs, as /usr is. Not below /tmp, which is covered for bubblewrap."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        monkeypatch.setattr(sandbox, "_SYSTEM", (*sandbox._SYSTEM, name))
        yield Path(name)


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def users_of(processes: list[int]) -> set[int]:
    return {Path(f"/proc/{pid}").stat().st_uid for pid in processes}


async def test_a_command_is_not_root(desk: Desk, mark: str) -> None:
    """Nor is any process that it starts, seen from outside."""
    call = asyncio.create_task(desk.call(run, command=f"{idle(mark)} & wait"))
    await soon(lambda: len(running(mark)) >= 3)  # bubblewrap, the command, and what it started
    users = users_of(running(mark))
    call.cancel()
    await asyncio.wait([call])
    assert users == {USER}


async def test_it_has_none_of_the_groups_of_root(desk: Desk) -> None:
    before = os.getgroups()
    os.setgroups([0, 4])
    try:
        result = await desk.call(run, command="grep Groups /proc/self/status")
    finally:
        os.setgroups(before)
    assert result["stdout"].split() == ["Groups:"]


async def test_it_reads_no_program_that_only_root_may(desk: Desk, programs: Path) -> None:
    (programs / "everybody").write_text("everybody")
    for name, mode in (("owner", 0o700), ("group", 0o750)):
        (programs / name).mkdir(mode=mode)
        (programs / name / "file").write_text("only root")
        (programs / f"{name}-file").write_text("only root")
        (programs / f"{name}-file").chmod(mode)
    result = await desk.call(run, command=f"cat {programs}/* {programs}/*/*; ls {programs}/owner {programs}/group")
    assert result["stdout"] == "everybody"


async def test_it_can_write_what_tools_wrote_and_they_what_it_wrote(desk: Desk) -> None:
    """While it runs, too: the tools do not write as root."""
    until = "until [ -e a/b/new.txt ]; do :; done"
    call = asyncio.create_task(desk.call(run, command=f"echo 1 > made; touch go; {until}; echo 2 >> a/b/new.txt"))
    await soon((desk.workspace / "go").exists)
    await desk.call(write_file, path="a/b/new.txt", content="1\n")
    assert (await call)["exit"] == 0
    await desk.call(edit_file, path="made", old="1", new="one")
    result = await desk.call(run, command="cat a/b/new.txt; echo two >> made; rmdir a/c; rm -r a; cat made")
    assert result["stdout"] == "1\n2\none\ntwo\n"
    assert owners(desk.workspace) == {USER}


def test_an_upload_belongs_to_it(desk: Desk) -> None:
    hand_over(str(desk.workspace), USER)
    part = Box(desk.workspace.parent).part([b"sent"])
    assert Box(desk.workspace).adopt("new/sent.txt", part) == "new/sent.txt"
    assert owners(desk.workspace) == {USER}


async def test_a_workspace_of_root_is_handed_over(desk: Desk) -> None:
    """An earlier version left it, or a restore, or a tool that writes without asking anybody."""
    (desk.workspace / "a" / "b").mkdir(parents=True, mode=0o700)
    (desk.workspace / "a" / "b" / "old.txt").write_text("old\n")
    (desk.workspace / "link").symlink_to("a/b/old.txt")
    result = await desk.call(run, command="echo new >> link && cat a/b/old.txt && rm -r a link && ls -A")
    assert result["stdout"] == "old\nnew\n"


async def test_what_lies_outside_is_not(desk: Desk) -> None:
    """Whatever leads there: a link, or another name of the same file."""
    secret = desk.outside / "secret.key"
    secret.chmod(0o600)
    (desk.workspace / "file").symlink_to(secret)
    (desk.workspace / "folder").symlink_to(desk.outside)
    (desk.workspace / "same").hardlink_to(secret)
    await desk.call(run, command="cat file same folder/*; true")
    assert owners(desk.outside) == {0}
    result = await desk.call(run, command="cat same || echo x >> same")
    assert result["stdout"] == ""
    assert (desk.workspace / "same").stat().st_uid == 0


async def test_a_folder_swapped_for_a_link_gives_nothing_away(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command swaps it between the moment it is seen and the moment it is opened."""
    (desk.workspace / "a").mkdir()
    opening = os.open

    def swap_then_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "a":
            (desk.workspace / "a").rmdir()
            (desk.workspace / "a").symlink_to(desk.outside)
        return opening(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap_then_open)
    hand_over(str(desk.workspace), USER)
    assert (desk.workspace / "a").is_symlink()
    assert owners(desk.outside) == {0}


async def test_it_can_open_its_own_output(desk: Desk) -> None:
    result = await desk.call(run, command="echo out > /dev/stdout; echo err | tee /dev/stderr > /dev/null")
    assert (result["stdout"], result["stderr"]) == ("out\n", "err\n")


async def test_folders_above_stay_closed(desk: Desk) -> None:
    """The workspace is below a folder that only root may enter, as the site's folders are, and it stays so."""
    desk.workspace.parent.chmod(0o700)
    assert (await desk.call(run, command="echo here"))["stdout"] == "here\n"
    assert desk.workspace.parent.stat().st_mode & 0o777 == 0o700
    assert desk.workspace.parent.stat().st_uid == 0


def test_where_the_user_cannot_be_had_there_is_no_sandbox(tmp_path: Path) -> None:
    """In a namespace that knows no user but root, which is what some containers are."""
    code = (
        "import pathlib, sys; from agents.plugins.shell import probe;"
        " found = probe.Probe(pathlib.Path(sys.argv[1]), 65530); print(found.sandbox(), found.why_not)"
    )
    told = subprocess.run(
        ["unshare", "--user", "--map-root-user", sys.executable, "-c", code, tmp_path],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.startswith("None ")
    assert "its folder cannot be given to user 65530" in told.stdout
