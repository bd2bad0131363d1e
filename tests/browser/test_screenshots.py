"""The command that takes pictures of the pages."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.agentsite.processes import ROOT, processes_of
from tests.browser.conftest import serving
from tests.browser.screenshots.png import reduced

pytestmark = pytest.mark.browser


def test_a_page_is_taken_by_its_name(tmp_path: Path) -> None:
    """Of a real site with a company's work in it, in the one variant that is named."""
    name, to = "chat-batch-phone-dark", str(tmp_path)
    command = [sys.executable, "-m", "tests.browser.screenshots", "--only", name, "--to", to]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert made.returncode == 0, made.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["chat-batch-phone-dark.png"]
    picture = (tmp_path / "chat-batch-phone-dark.png").read_bytes()
    assert struct.unpack(">II", picture[16:24]) == (390, 844)


def test_nothing_writes_to_the_folder_of_a_site_that_is_over(tmp_path: Path) -> None:
    """So that it can be deleted at once."""
    with serving(tmp_path):
        assert len(processes_of(tmp_path / "data")) > 2
    assert processes_of(tmp_path / "data") == []


def test_a_reduced_picture_keeps_its_colours(browser: Browser) -> None:
    """The README's have 256 colours: those that a page has, the rare ones among them."""
    page = browser.new_page()
    dot = "<p style='margin: 0; width: 3px; height: 3px; background: #2f66d8'>"
    page.set_content(f"<body style='margin: 0; background: linear-gradient(90deg, #fff, #c46)'>{dot}")
    picture = page.screenshot()
    page.close()
    small = reduced(picture)
    assert len(small) < len(picture)
    assert struct.unpack(">II", small[16:24]) == struct.unpack(">II", picture[16:24])
    palette, data = small[41:].split(b"IDAT", 1)
    place = zlib.decompressobj().decompress(data)[1]
    assert palette[3 * place :][:3] == bytes.fromhex("2f66d8")
