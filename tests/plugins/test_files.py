import os

import pytest

from agents.plugins.files import tools
from agents.plugins.files.tools import list_files, read_file
from tests.plugins.calls import Desk


async def test_it_reads_a_file_as_it_is(desk: Desk) -> None:
    (desk.workspace / "ä b.txt").write_text("one\n\ttwo ✓\n")
    assert await desk.call(read_file, path="ä b.txt") == "one\n\ttwo ✓"
    assert await desk.call(read_file, path="./ä b.txt") == "one\n\ttwo ✓"


async def test_it_reads_a_part_and_says_how_to_go_on(desk: Desk) -> None:
    (desk.workspace / "n").write_text("".join(f"{n}\n" for n in range(1, 11)))
    assert await desk.call(read_file, path="n", limit=2) == "1\n2\n[Lines 1 to 2 of 10; read on with offset 3.]"
    assert await desk.call(read_file, path="n", offset=9) == "9\n10\n[Lines 9 to 10 of 10.]"
    assert await desk.call(read_file, path="n", offset=11) == "[The file has 10 lines.]"


async def test_following_the_offsets_gives_the_whole_file(desk: Desk) -> None:
    lines = [f"line {n} " + "x" * (n % 300) for n in range(1, 1200)]
    (desk.workspace / "long").write_text("\n".join(lines) + "\n")
    seen: list[str] = []
    while len(seen) < len(lines):
        text = await desk.call(read_file, path="long", offset=len(seen) + 1)
        assert len(text) < 16_000  # what a model is shown of one result
        seen += text.split("\n")[:-1]
    assert seen == lines


async def test_an_endless_line_is_cut(desk: Desk) -> None:
    (desk.workspace / "long").write_text("x" * 1_000_000)
    text = await desk.call(read_file, path="long")
    assert text.endswith("[Line 1 of 1 is cut: it has 1,000,000 characters.]")
    assert len(text) < 16_000


async def test_an_empty_file_says_so(desk: Desk) -> None:
    (desk.workspace / "empty").touch()
    assert await desk.call(read_file, path="empty") == "[The file has 0 lines.]"


async def test_what_is_not_utf8_is_shown_as_far_as_it_goes(desk: Desk) -> None:
    (desk.workspace / "latin").write_bytes("Grüße".encode("latin-1"))
    text = await desk.call(read_file, path="latin")
    assert text.startswith("Gr\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}e\n[Not UTF-8")
    text.encode()  # nothing that a database would refuse


async def test_a_byte_order_mark_is_no_text(desk: Desk) -> None:
    (desk.workspace / "bom").write_bytes(b"\xef\xbb\xbfhello\n")
    assert await desk.call(read_file, path="bom") == "hello"


async def test_binary_is_refused_with_its_size(desk: Desk) -> None:
    (desk.workspace / "image.png").write_bytes(b"\x89PNG\0" + bytes(2000))
    error = await desk.refused(read_file, path="image.png")
    assert (error.code, error.message) == ("binary", "'image.png' is not text: 2.0 kB of binary data.")


async def test_four_gigabytes_are_refused_unread(desk: Desk) -> None:
    with (desk.workspace / "big").open("wb") as stream:
        stream.truncate(4 * 2**30)
    assert (await desk.refused(read_file, path="big")).code == "too_large"


async def test_a_file_that_cannot_say_its_size_is_read_no_further_than_the_limit(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.workspace / "grows").write_text("x" * 100)
    monkeypatch.setattr(tools, "READ_MOST", 10)
    assert (await desk.refused(read_file, path="grows")).code == "too_large"


async def test_it_lists_paths_that_can_be_read(desk: Desk) -> None:
    (desk.workspace / "src" / "deep" / "er").mkdir(parents=True)
    (desk.workspace / "src" / "main.py").write_text("x" * 1234)
    (desk.workspace / "src" / "deep" / "er" / "hidden").touch()
    (desk.workspace / "a.txt").write_text("hello")
    assert await desk.call(list_files) == "a.txt  5 B\nsrc/\nsrc/deep/\nsrc/main.py  1.2 kB"
    assert await desk.call(list_files, path="src/", depth=1) == "src/deep/\nsrc/main.py  1.2 kB"
    assert await desk.call(list_files, path="src/deep/er/", depth=1) == "src/deep/er/hidden  0 B"


async def test_it_lists_nothing_as_nothing(desk: Desk) -> None:
    assert await desk.call(list_files) == "[The folder is empty.]"


async def test_a_long_listing_is_cut(desk: Desk) -> None:
    for n in range(tools.LIST_MOST + 5):
        (desk.workspace / f"{n:04}").touch()
    lines = (await desk.call(list_files)).split("\n")
    assert lines[0] == "0000  0 B"
    assert lines[tools.LIST_MOST - 1] == f"{tools.LIST_MOST - 1:04}  0 B"
    assert lines[tools.LIST_MOST :] == [
        "[Only the first 300 entries: list one of the folders, or use less depth, to see more.]"
    ]


async def test_links_and_pipes_are_named_and_not_followed(desk: Desk) -> None:
    (desk.workspace / "out").symlink_to(desk.outside)
    os.mkfifo(desk.workspace / "pipe")
    assert await desk.call(list_files) == "out  (a link, not followed)\npipe  (a pipe, socket or device)"


async def test_a_name_cannot_pass_for_two(desk: Desk) -> None:
    for name in ("a  1 B\nb  2 B", os.fsdecode(b"\xff"), "\N{RIGHT-TO-LEFT OVERRIDE}txt.exe"):
        (desk.workspace / name).touch()
    text = await desk.call(list_files)
    assert text == "a  1 B\\nb  2 B  0 B\n\\u202etxt.exe  0 B\n\\udcff  0 B"


def test_both_read_and_neither_is_gated() -> None:
    for tool in (list_files, read_file):
        assert (tool.risk, tool.approval, tool.idempotent) == ("read", False, True)
        assert tool.says is not None
        assert "workspace" in tool.description
