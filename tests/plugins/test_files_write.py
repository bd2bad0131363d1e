"""Writing and editing files: what is shown before is what is done, and the errors say what to do."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from agents.engine.errors import ToolError
from agents.engine.outputs.change import Change
from agents.engine.tools.tool import Risk, Tool, ToolCall
from agents.plugins.files import writing
from agents.plugins.files.box import Box
from agents.plugins.files.tools import edit_file, write_file
from tests.engine.support import shown_of
from tests.plugins.calls import Desk


def change(desk: Desk, tool: Tool, **payload: Any) -> Change:
    """What a person would be shown."""
    looks = shown_of(tool, payload, desk.services)
    assert looks.change
    return looks.change


def facts(desk: Desk, tool: Tool, **payload: Any) -> list[str]:
    found: list[str] = shown_of(tool, payload, desk.services).recorded["facts"]
    return found


async def test_a_new_file_is_made_with_its_folders(desk: Desk) -> None:
    asked = {"path": "./notes//plan.md", "content": "one\ntwo"}
    assert change(desk, write_file, **asked) == Change(path="notes/plan.md", before=None, after="one\ntwo")
    assert facts(desk, write_file, **asked) == ["Creates notes/plan.md, a new file."]
    assert not (desk.workspace / "notes").exists(), "to look is not to make"
    assert await desk.call(write_file, **asked) == "Created notes/plan.md: 2 lines, 7 bytes."
    assert (desk.workspace / "notes" / "plan.md").read_text() == "one\ntwo"


async def test_a_file_is_replaced_whole_and_keeps_its_permissions(desk: Desk) -> None:
    """In one step: whoever has the old one open goes on reading it as it was."""
    there = desk.workspace / "run.sh"
    there.write_text("echo old\n")
    there.chmod(0o750)
    assert change(desk, write_file, path="run.sh", content="").before == "echo old\n"
    assert facts(desk, write_file, path="run.sh", content="") == ["Replaces run.sh."]
    with there.open() as old:
        assert await desk.call(write_file, path="run.sh", content="é\n") == "Wrote run.sh: 1 line, 3 bytes."
        assert old.read() == "echo old\n"
    assert there.read_text() == "é\n"
    assert there.stat().st_mode & 0o777 == 0o750
    assert list(desk.workspace.iterdir()) == [there]


@pytest.mark.parametrize("tool", [write_file, edit_file])
def test_both_wait_for_a_person_and_neither_runs_again_by_itself(tool: Tool) -> None:
    assert (tool.risk, tool.approval, tool.idempotent, tool.preview) == (Risk.WRITE, True, False, "diff")


async def test_an_edit_replaces_the_one_place(desk: Desk) -> None:
    (desk.workspace / "a.py").write_text("x = 1\ny = 2\n")
    asked = {"path": "a.py", "old": "y = 2", "new": "y = 3"}
    assert change(desk, edit_file, **asked) == Change(path="a.py", before="x = 1\ny = 2\n", after="x = 1\ny = 3\n")
    assert facts(desk, edit_file, **asked) == ["Changes a.py in one place."]
    assert await desk.call(edit_file, **asked) == "Wrote a.py: 2 lines, 12 bytes."
    assert (desk.workspace / "a.py").read_text() == "x = 1\ny = 3\n"


async def test_an_edit_replaces_all_places_where_told_to(desk: Desk) -> None:
    (desk.workspace / "a").write_text("b a b a b")
    asked = {"path": "a", "old": "b", "new": "cc", "all": True}
    assert facts(desk, edit_file, **asked) == ["Changes a in 3 places."]
    await desk.call(edit_file, **asked)
    assert (desk.workspace / "a").read_text() == "cc a cc a cc"


@pytest.mark.parametrize(
    ("text", "old", "code", "says"),
    [
        (b"a b a b a", "a", "not_unique", "occurs 3 times in 'f': include more of the text around"),
        (b"a", "x", "not_found", "does not occur in the file. Read 'f' again and copy the text exactly."),
        (b"if x:\n\treturn\n", "if x:\n    return\n", "not_found", "with different whitespace or line breaks"),
        (b"a\r\nb\r\n", "a\nb", "not_found", "the lines of this file end in \\r\\n"),
        (b"Gr\xfc\xdfe x", "x", "binary", "not UTF-8 text"),
        (b"\x89PNG\0 x", "x", "binary", "not UTF-8 text"),
        (b"same", "same", "unchanged", "already has exactly this text"),
    ],
)
async def test_what_cannot_be_edited_is_told(desk: Desk, text: bytes, old: str, code: str, says: str) -> None:
    (desk.workspace / "f").write_bytes(text)
    new = "same" if code == "unchanged" else "y"
    error = await desk.refused(edit_file, path="f", old=old, new=new)
    assert error.code == code
    assert says in error.message
    with pytest.raises(ToolError):
        shown_of(edit_file, {"path": "f", "old": old, "new": new}, desk.services)
    assert (desk.workspace / "f").read_bytes() == text


async def test_what_is_not_there_is_not_edited(desk: Desk) -> None:
    assert (await desk.refused(edit_file, path="f", old="a", new="b")).message == "'f' does not exist."


@pytest.mark.parametrize("there", [b"\x89PNG\0\r\n", "ü".encode("latin-1")])
async def test_what_a_diff_cannot_show_is_not_replaced(desk: Desk, there: bytes) -> None:
    (desk.workspace / "f").write_bytes(there)
    assert (await desk.refused(write_file, path="f", content="new")).code == "binary"
    assert (desk.workspace / "f").read_bytes() == there


async def test_what_is_no_text_is_not_written(desk: Desk) -> None:
    assert (await desk.refused(write_file, path="f", content="a\0b")).code == "binary"
    assert write_file.problem({"path": "f", "content": "\ud800"})


async def test_too_much_is_not_written(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "WRITE_MOST", 5)
    assert (await desk.refused(write_file, path="f", content="üüü")).code == "too_large"
    (desk.workspace / "f").write_text("123456")
    assert (await desk.refused(write_file, path="f", content="a")).code == "too_large"
    assert (desk.workspace / "f").read_text() == "123456"


async def test_many_small_places_are_refused_before_they_are_replaced(desk: Desk) -> None:
    """A worker does not make gigabytes of a small file, to find that they are too many."""
    (desk.workspace / "f").write_text("," * 200_000)
    asked: dict[str, Any] = {"path": "f", "old": ",", "new": "x" * 600, "all": True}
    tracemalloc.start()
    try:
        with pytest.raises(ToolError) as caught:
            shown_of(edit_file, asked, desk.services)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.code == "too_large"
    assert peak < 30 * 2**20, "120 MB, were they made"
    (desk.workspace / "f").write_text("," * 1000)
    assert len(change(desk, edit_file, **asked).after) == 600_000


async def test_a_file_is_read_once_to_show_what_an_edit_changes(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker's loop waits meanwhile."""
    (desk.workspace / "f").write_text("a b")
    read, there = list[str](), Box.read

    def reading(box: Box, path: str, most: int) -> bytes:
        read.append(path)
        return there(box, path, most)

    monkeypatch.setattr(Box, "read", reading)
    assert facts(desk, edit_file, path="f", old="a", new="c") == ["Changes f in one place."]
    assert read == ["f"]


async def test_a_file_that_changed_since_its_change_was_worked_out_is_left_alone(desk: Desk) -> None:
    """Between the last look and the work there is a moment more: the work looks once again."""
    (desk.workspace / "f").write_text("shown")
    asked: dict[str, Any] = {"path": "f", "content": "new"}
    shown = change(desk, write_file, **asked)
    (desk.workspace / "f").write_text("other")
    call = ToolCall("files.write", write_file.input(**asked), 1, desk.services, "1/0", change=shown)
    with pytest.raises(ToolError) as caught:
        write_file.function(call)
    assert caught.value.code == "changed_since"
    assert (desk.workspace / "f").read_text() == "other"


async def test_bytes_that_are_text_stay_as_they_are(desk: Desk) -> None:
    """Marks at the beginning, and ends of lines of another system."""
    (desk.workspace / "f").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    await desk.call(edit_file, path="f", old="b", new="c")
    assert (desk.workspace / "f").read_bytes() == b"\xef\xbb\xbfa\r\nc\r\n"
