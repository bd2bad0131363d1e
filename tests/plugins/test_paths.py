"""T-54: a corpus of paths, against all that takes one: nothing outside is read, and not a byte is written there."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agents.engine.errors import ToolError
from agents.plugins.files.box import Box
from agents.plugins.files.tools import edit_file, list_files, read_file, search_files, write_file
from tests.plugins.calls import SECRET, Desk

NAMES = {
    "absolute": "/etc/passwd",
    "up": "../../data/secret.key",
    "up from below": "folder/../../../data/secret.key",
    "prefix": "../1_secret/secret.key",
    "proc": "/proc/self/environ",
    "NUL": "a\0b",
    "long name": "x" * 256,
    "long path": "/".join(["x" * 100] * 20),
    "root": ".",
    "folder": "folder",
    "folder's end": "new/",
    "linked file": "to-file",
    "linked folder": "to-folder/secret.key",
    "below a link, not there": "to-folder/new.txt",
    "below a link, deeper": "to-folder/a/b/new.txt",
    "link up": "up/data/secret.key",
    "link to proc": "proc/self/root/etc/passwd",
    "link to nowhere": "nowhere",
    "link inside": "inside/file",
    "loop": "loop",
    "hard link": "hard",
    "pipe": "pipe",
    "socket": "socket",
    "sparse": "sparse",
    "through a file": "file/below",
    "ours": f".{'0' * 16}.part",
}
REFUSED = {"bad_path", "not_a_file", "not_a_folder", "not_found", "link", "too_large", "forbidden"}
LOOKING = {"root", "folder", "folder's end", "sparse"}
"""Where a search or a listing is right to look."""


@pytest.fixture
def corpus(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A workspace with everything that leads out of one, or is no file."""
    (desk.workspace.parent / "1_secret").mkdir()
    (desk.workspace.parent / "1_secret" / "secret.key").write_text(SECRET)
    (desk.workspace / "folder").mkdir()
    (desk.workspace / "file").write_text("text")
    links: dict[str, str | Path] = {
        "to-file": desk.outside / "secret.key",
        "to-folder": desk.outside,
        "up": "../..",
        "proc": "/proc",
        "nowhere": desk.outside / "new.txt",
        "inside": "folder",
        "loop": "loop",
    }
    for name, target in links.items():
        (desk.workspace / name).symlink_to(target)
    os.link(desk.outside / "secret.key", desk.workspace / "hard")
    os.mkfifo(desk.workspace / "pipe")
    monkeypatch.chdir(desk.workspace)  # the address of a socket is short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
    with (desk.workspace / "sparse").open("wb") as stream:
        stream.truncate(4 * 2**30)
    return desk


Act = Callable[[Desk, str], Awaitable[object]]


async def put(desk: Desk, path: str) -> None:
    Box(desk.workspace).write(path, b"new")


async def create(desk: Desk, path: str) -> str:
    return kept(desk, path, b"new")


def kept(desk: Desk, path: str, content: bytes = b"") -> str:
    """Where a file that was given lies, as uploads give them."""
    return Box(desk.workspace).adopt(path, Box(desk.workspace.parent).part([content]))


ACTS: dict[str, Act] = {
    "read": lambda desk, path: desk.call(read_file, path=path),
    "write": lambda desk, path: desk.call(write_file, path=path, content=str(time.monotonic_ns())),
    "edit": lambda desk, path: desk.call(edit_file, path=path, old="outside", new="new"),
    "search": lambda desk, path: desk.call(search_files, path=path, pattern="outside"),
    "list": lambda desk, path: desk.call(list_files, path=path),
    "put": put,
    "create": create,
}


def outside(desk: Desk) -> dict[str, str]:
    """What lies beside the workspace."""
    folders = [desk.outside, desk.workspace.parent / "1_secret"]
    return {str(path): path.read_text() for folder in folders for path in folder.rglob("*")}


@pytest.mark.parametrize("path", NAMES)
@pytest.mark.parametrize("act", ACTS)
async def test_nothing_leads_out(corpus: Desk, act: str, path: str) -> None:
    """Each is refused in words, or has to do with the workspace alone; nothing waits, and nothing outside changes."""
    before, inside = outside(corpus), sorted(corpus.workspace.iterdir())
    done, error = "", None
    try:
        done = str(await ACTS[act](corpus, NAMES[path]))
    except ToolError as caught:
        error = caught
    assert SECRET not in f"{done}{error}"
    if error:
        assert error.code in REFUSED
    elif act == "create":  # what has the name already is left alone, whatever it is
        assert done.endswith("-2")
        assert (corpus.workspace / done).read_text() == "new"
    elif act == "put":
        assert path == "sparse", "a file like any other"
    else:
        assert act in ("search", "list")
        assert path in LOOKING
    assert outside(corpus) == before
    if act in ("write", "edit", "put"):
        assert sorted(corpus.workspace.iterdir()) == inside


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes devices")
@pytest.mark.parametrize("act", ["read", "write", "edit", "search", "put"])
async def test_no_device_is_opened(desk: Desk, act: str) -> None:
    with suppress(PermissionError):
        os.mknod(desk.workspace / "zero", 0o666 | 0o020000, os.makedev(1, 5))
        with pytest.raises(ToolError) as caught:
            await ACTS[act](desk, "zero")
        assert caught.value.code == "not_a_file"


def exchange(one: Path, other: Path) -> None:
    """Give each the name of the other, in one step."""
    done = ctypes.CDLL(None, use_errno=True).renameat2(-100, bytes(one), -100, bytes(other), 2)  # RENAME_EXCHANGE
    if done:
        raise OSError(ctypes.get_errno(), "cannot be exchanged")


@pytest.mark.parametrize("act", ["write", "create"])
async def test_swapping_a_folder_for_a_link_while_it_is_written_to(desk: Desk, act: str) -> None:
    """T-54: 10,000 swaps of a folder and a link to the outside; 0 bytes are written there."""
    swap, link = desk.workspace / "swap", desk.workspace / "link"
    swap.mkdir()
    link.symlink_to(desk.outside)
    before, outcomes, enough = outside(desk), set[str](), threading.Event()
    swaps = 0

    def swapping() -> None:
        nonlocal swaps
        while not enough.is_set():
            exchange(swap, link)
            swaps += 1

    thread = threading.Thread(target=swapping)
    thread.start()
    give_up = time.monotonic() + 60
    try:
        while swaps < 10_000 or outcomes < {"written", "link"}:
            assert time.monotonic() < give_up
            try:
                await ACTS[act](desk, "swap/deep/file")
                outcomes.add("written")
            except ToolError as error:
                outcomes.add(error.code)
    finally:
        enough.set()
        thread.join()
    assert outside(desk) == before
    assert outcomes <= {"written", "link", "not_a_folder", "changed_since"}


def test_of_many_with_one_name_each_gets_its_own(desk: Desk) -> None:
    """A file that is given never replaces one that is there; a name that would be too long is cut."""
    assert [kept(desk, "given/report.tar.gz", bytes([n])) for n in range(3)] == [
        "given/report.tar.gz",
        "given/report.tar-2.gz",
        "given/report.tar-3.gz",
    ]
    assert (desk.workspace / "given" / "report.tar-3.gz").read_bytes() == b"\2"
    assert [kept(desk, ".profile"), kept(desk, ".profile")] == [".profile", ".profile-2"]
    long = "\N{LATIN SMALL LETTER A WITH DIAERESIS}" * 125 + ".txt"
    kept(desk, long)
    assert kept(desk, long) == long[:124] + "-2.txt"


def test_a_file_that_cannot_be_kept_leaves_nothing(desk: Desk) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"begins"
        raise OSError(28, "No space left on device")

    box = Box(desk.workspace)
    with pytest.raises(ToolError, match="the disk is full"):
        box.part(pieces())
    assert not list(desk.workspace.iterdir())


def test_what_a_killed_worker_left_goes_when_its_folder_is_written_to(desk: Desk) -> None:
    """After an hour, and only what has exactly such a name and is a file."""
    folder, past = desk.workspace / "folder", time.time() - 3601
    folder.mkdir()
    kinds = {"old": f".{'a' * 16}.part", "young": f".{'b' * 16}.part", "mine": f".{'a' * 17}.part"}
    for name in kinds.values():
        (folder / name).touch()
    link, below = folder / f".{'c' * 16}.part", folder / f".{'d' * 16}.part"
    link.symlink_to(desk.outside / "secret.key")
    below.mkdir()
    elsewhere = desk.workspace / kinds["old"]
    elsewhere.touch()
    for path in (folder / kinds["old"], folder / kinds["mine"], link, below, elsewhere):
        os.utime(path, (past, past), follow_symlinks=False)
    before = outside(desk)
    Box(desk.workspace).write("folder/new", b"new")
    left = {path.name for path in folder.iterdir()}
    assert left == {kinds["young"], kinds["mine"], link.name, below.name, "new"}
    assert elsewhere.exists(), "another folder"
    assert kept(desk, "given") == "given"
    assert not elsewhere.exists()
    assert outside(desk) == before


@pytest.mark.parametrize("act", ["put", "create"])
async def test_a_write_that_fails_leaves_no_file(desk: Desk, act: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the same write succeeds as soon as it can."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", full)
        with pytest.raises(ToolError, match="the disk is full"):
            await ACTS[act](desk, "new/deep/file")
    assert not [path for path in desk.workspace.rglob("*") if path.is_file()]
    await ACTS[act](desk, "new/deep/file")
    assert (desk.workspace / "new" / "deep" / "file").read_bytes() == b"new"


def test_a_part_that_gets_no_name_leaves_none(desk: Desk) -> None:
    with pytest.raises(ToolError, match="does not exist"):
        Box(desk.workspace).adopt("given.txt", desk.workspace.parent / "no part")
    assert not list(desk.workspace.iterdir())


def test_what_is_being_written_is_in_no_listing(desk: Desk) -> None:
    """What a worker left that was killed in its midst belongs to nobody, and cannot be named."""
    left = desk.workspace / f".{'0123456789abcdef'}.part"
    left.write_text("half")
    Path(desk.workspace / ".hidden").touch()
    assert [entry.path for entry in Box(desk.workspace).walk()] == [".hidden"]
    with pytest.raises(ToolError, match="being written"):
        Box(desk.workspace).read(left.name, 10)
