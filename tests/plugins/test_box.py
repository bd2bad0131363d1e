"""Nothing leads out of a workspace: paths, links, what is no file, and a race."""

import os
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from agents.engine.errors import ToolError
from agents.plugins.files.box import Box, parts
from agents.plugins.files.tools import list_files, read_file
from tests.plugins.calls import SECRET, Desk, descriptors, until

LEADING_OUT = [
    "/etc/passwd",
    "//etc/passwd",
    "..",
    "../",
    "../../data/secret.key",
    "folder/../../../data/secret.key",
    "folder/..",
    "./../1/../../data/secret.key",
    "not/there/yet/../../../../../data/secret.key",
]
NO_PATHS = ["a\0b", "\0", "x" * 300, "/".join("x" * 200 for _ in range(50))]


@pytest.mark.parametrize("path", LEADING_OUT + NO_PATHS)
async def test_a_path_that_leads_out_or_is_none(desk: Desk, path: str) -> None:
    (desk.workspace / "folder").mkdir()
    for tool in (read_file, list_files):
        assert (await desk.refused(tool, path=path)).code in ("bad_path", "not_found")


@pytest.mark.parametrize(
    "path", ["~/x", "$HOME/x", "%2e%2e/x", "..\\..\\x", "C:\\x", "file:///etc/passwd", "...", "\u2025/x"]
)
async def test_what_only_looks_like_leading_out_is_a_name(desk: Desk, path: str) -> None:
    assert (await desk.refused(read_file, path=path)).code == "not_found"


async def test_a_neighbour_with_the_same_beginning_is_not_inside(desk: Desk) -> None:
    (desk.workspace.parent / "12").mkdir()
    (desk.workspace.parent / "12" / "x").write_text(SECRET)
    assert (await desk.refused(read_file, path="../12/x")).code == "bad_path"


async def test_no_link_is_followed_not_even_one_that_stays_inside(desk: Desk) -> None:
    (desk.workspace / "folder").mkdir()
    (desk.workspace / "folder" / "file").write_text("inside")
    links: dict[str, str | Path] = {
        "file": desk.outside / "secret.key",
        "folder2": desk.outside,
        "relative": "../../data/secret.key",
        "proc": "/proc/self/root",
        "inside": "folder",
        "loop": "loop",
        "nowhere": "not-there",
    }
    for name, target in links.items():
        (desk.workspace / name).symlink_to(target)
    for path in (
        "file",
        "relative",
        "loop",
        "nowhere",
        "folder2/secret.key",
        "inside/file",
        "proc/etc/passwd",
        "inside",
    ):
        error = await desk.refused(read_file, path=path)
        assert error.code == "link"
        assert "links are not followed" in error.message
    for path in ("folder2", "inside", "proc", "file"):
        assert (await desk.refused(list_files, path=path)).code == "link"


async def test_a_workspace_that_became_a_link_is_not_entered(desk: Desk) -> None:
    desk.workspace.rmdir()
    desk.workspace.symlink_to(desk.outside)
    await desk.refused(read_file, path="secret.key")
    await desk.refused(list_files)


async def test_a_hard_link_may_be_a_file_from_outside(desk: Desk) -> None:
    os.link(desk.outside / "secret.key", desk.workspace / "mine")
    error = await desk.refused(read_file, path="mine")
    assert error.code == "link"
    assert "hard links" in error.message


async def test_what_is_no_file_is_neither_read_nor_waited_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(desk.workspace / "pipe")
    (desk.workspace / "folder").mkdir()
    monkeypatch.chdir(desk.workspace)  # a socket's address is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for path in ("pipe", "socket", "folder", "."):
            assert (await desk.refused(read_file, path=path)).code == "not_a_file"


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes devices")
async def test_a_device_is_not_read(desk: Desk) -> None:
    with suppress(PermissionError):
        os.mknod(desk.workspace / "zero", 0o666 | 0o020000, os.makedev(1, 5))
        assert (await desk.refused(read_file, path="zero")).code == "not_a_file"


async def test_what_is_missing_or_in_the_way_is_named(desk: Desk) -> None:
    (desk.workspace / "file").touch()
    missing = await desk.refused(read_file, path="not/there")
    assert (missing.code, missing.message) == ("not_found", "'not' does not exist.")
    assert (await desk.refused(read_file, path="file/below")).code == "not_a_folder"
    assert (await desk.refused(list_files, path="file")).code == "not_a_folder"


def test_a_place_is_where_something_may_come_to_be(desk: Desk) -> None:
    (desk.workspace / "folder").mkdir()
    with Box(desk.workspace).place("folder/new") as (descriptor, name):
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, dir_fd=descriptor))
    assert (desk.workspace / "folder" / "new").exists()


def test_parts_are_names() -> None:
    assert parts("./a//b/.") == ("a", "b")
    assert parts(".") == parts("") == ()


@pytest.mark.parametrize("path", ["a/\ud800", "\udcff"])
def test_a_half_character_is_in_no_path(path: str) -> None:
    with pytest.raises(ToolError, match="a file name cannot contain"):
        parts(path)


def test_no_descriptor_is_left_open(desk: Desk) -> None:
    (desk.workspace / "a" / "b").mkdir(parents=True)
    (desk.workspace / "a" / "link").symlink_to("b")
    box = Box(desk.workspace)
    before = descriptors()
    for path in ("a/b/c", "a/link/c", "a/b", "a"):
        with pytest.raises(ToolError):
            box.read(path, 10)
    list(box.walk(depth=5))
    next(box.walk(depth=5))
    assert descriptors() == before


def test_swapping_a_folder_for_a_link_gains_nothing(desk: Desk) -> None:
    """The folder is now a folder, now a link to the folder outside, thousands of times while it is read."""
    box = Box(desk.workspace)
    (desk.workspace / "swap").mkdir()
    (desk.workspace / "swap" / "secret.key").write_text("inside")
    (desk.workspace / "link").symlink_to(desk.outside)
    enough = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        names = [desk.workspace / name for name in ("swap", "link", "aside")]
        while not enough.is_set():
            folder, link, aside = names
            folder.rename(aside)
            link.rename(folder)
            folder.rename(link)
            aside.rename(folder)
            swaps += 1

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        read: dict[str, int] = {}

        def attempt() -> bool:
            for _ in range(100):
                try:
                    outcome = box.read("swap/secret.key", 100).decode()
                except ToolError as error:
                    outcome = error.code
                listed = [entry.path for entry in box.walk(depth=3)]
                assert not any(path.startswith("link/") for path in listed)
                read[outcome] = read.get(outcome, 0) + 1
            return swaps > 10_000 and read.get("inside", 0) > 100 and read.get("link", 0) > 100

        until(attempt, 60)
    finally:
        enough.set()
        thread.join()
    assert SECRET not in read
    assert set(read) <= {"inside", "link", "not_found", "not_a_folder"}
