"""What a file is: its content decides, and its name only between one text and another."""

from __future__ import annotations

import struct
import time

import pytest

from conversations.pages.files.images import Image, image_of
from conversations.pages.files.kinds import Kind, kind_of
from tests.conversations.pages.files.filing import GIF, SVG, pdf, png

HTML = b"<!doctype html><script>alert(1)</script>"
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(10) + b"\xff\xff\xc2\x00\x11\x08" + struct.pack(">HH", 20, 30) + b"\x03"
SVG_BEHIND = b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- a <svg> -->\n<!DOCTYPE svg [<!ENTITY a "b">]>\n<!-- -->' + SVG


def webp(chunk: bytes, data: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", len(data) + 12) + b"WEBP" + chunk + struct.pack("<I", len(data)) + data


@pytest.mark.parametrize(
    ("content", "image"),
    [
        (png(640, 480), Image("image/png", 640, 480)),
        (GIF, Image("image/gif", 3, 2)),
        (JPEG, Image("image/jpeg", 30, 20)),
        (webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 5, 6)), Image("image/webp", 5, 6)),
        (webp(b"VP8L", b"\x2f" + struct.pack("<I", 4 | 5 << 14)), Image("image/webp", 5, 6)),
        (webp(b"VP8X", b"\0\0\0\0\x04\0\0\x05\0\0"), Image("image/webp", 5, 6)),
        (webp(b"ODD?", b"\0" * 20), Image("image/webp")),
        (b"\xff\xd8\xff", Image("image/jpeg")),
        (b"\xff\xd8\xff\xe0\x00\x00" + b"\xff\xe0\x00\x00" * 9, Image("image/jpeg")),
        (SVG, Image("image/svg+xml")),
        (SVG_BEHIND, Image("image/svg+xml")),
        (b"<html><svg></svg></html>", None),
        (b"<svgx>", None),
        (b"", None),
    ],
)
def test_an_image_is_known_by_its_first_bytes(content: bytes, image: Image | None) -> None:
    assert image_of(content) == image


@pytest.mark.parametrize("start", [b"<!---->", b"<!-- ", b" ", b"<?xml ", b"<!doctype svg [", b"<!doctype svg "])
def test_it_takes_no_time_to_see_that_something_is_no_svg(start: bytes) -> None:
    before = time.process_time()
    assert image_of(start * 9_000) is None
    assert time.process_time() - before < 0.5


@pytest.mark.parametrize(
    ("content", "name", "media_type", "kind"),
    [
        (png(), "chart.png", "image/png", Kind.IMAGE),
        (png(), "page.html", "text/html", Kind.IMAGE),
        (SVG, "logo.svg", "text/plain", Kind.IMAGE),
        (SVG, "logo", "image/svg+xml", Kind.IMAGE),
        (SVG, "logo.html", "image/svg+xml", Kind.HTML),
        (SVG, "logo.txt", "image/svg+xml", Kind.TEXT),
        (HTML, "logo.svg", "image/svg+xml", Kind.TEXT),
        (pdf(), "report.pdf", "application/pdf", Kind.PDF),
        (pdf(), "report.html", "text/html", Kind.PDF),
        (b"a report", "report.pdf", "application/pdf", Kind.TEXT),
        (HTML, "page.html", "", Kind.HTML),
        (HTML, "PAGE.HTM", "", Kind.HTML),
        (HTML, "page", "text/html", Kind.HTML),
        (HTML, "page", "image/png", Kind.TEXT),
        (HTML, "chart.png", "text/html", Kind.TEXT),
        (HTML, "chart.png", "image/png", Kind.TEXT),
        (b"a,b\n1,2\n", "sales.CSV", "", Kind.TABLE),
        (b"a\tb\n", "sales.tsv", "", Kind.TABLE),
        (b"a,b\n", "sales", "text/csv", Kind.TABLE),
        (b"# Title", "notes.md", "text/plain", Kind.MARKDOWN),
        (b'{"a": 1}', "data.json", "application/json", Kind.TEXT),
        (b"\x1b[31mred\x1b[0m", "run.log", "", Kind.TEXT),
        (b"caf\xe9\n", "old.txt", "", Kind.TEXT),
        ("Grüße".encode("utf-16"), "old.txt", "", Kind.TEXT),
        ("Grüße".encode()[:-2], "cut.txt", "", Kind.TEXT),
        (b"PK\x03\x04\x14\0\0\0", "notes.md", "text/markdown", Kind.NOTHING),
        (b"\x1f\x8b\x08\x01\xe9\x04\xf1", "page.html.gz", "", Kind.NOTHING),
        (b"\x01\xe9\xe9\xe9", "page.html", "text/html", Kind.NOTHING),
        (b"", "empty.md", "", Kind.NOTHING),
    ],
)
def test_a_file_is_what_its_content_says(content: bytes, name: str, media_type: str, kind: Kind) -> None:
    assert kind_of(content, name, media_type) == kind
