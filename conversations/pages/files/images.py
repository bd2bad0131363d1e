"""Images: which type the first bytes of a file say it is, and its size in pixels. Names and claims do not count."""

from __future__ import annotations

import re
from dataclasses import dataclass

HEAD_BYTES = 64 * 1024
"""How much of a file is looked at. A JPEG has its size behind its metadata; beyond this it is unknown."""
BYTES_MOST = 10_000_000
"""The largest image that pages show."""
PIXELS_MOST = 100_000_000
"""The most pixels of an image that pages show: a browser takes four bytes for each, however small the file is."""
SVG = "image/svg+xml"

_SVG = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?><\?xml[^>]*+>)?+(?>\s++|<!--(?>.*?-->))*+"
    rb"(?><!doctype\s++svg[^>\[]*+(?>\[[^\]]*+\]\s*+)?+>)?+(?>\s++|<!--(?>.*?-->))*+<svg[\s>]",
    re.IGNORECASE | re.DOTALL,
)
"""How an SVG begins. Nothing in it backtracks: it takes linear time whatever the file holds."""
_JPEG_SIZES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""The segments of a JPEG that say its size."""


@dataclass(frozen=True)
class Image:
    """The media type of an image, and its width and height in pixels; 0 where they are not known."""

    media_type: str
    width: int = 0
    height: int = 0

    @property
    def too_large(self) -> bool:
        """Whether it has more pixels than a page should make a browser draw."""
        return self.width * self.height > PIXELS_MOST


def image_of(head: bytes) -> Image | None:
    """Return which image begins with these bytes; None if it is none that pages show."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return Image("image/png", _big(head[16:20]), _big(head[20:24]))
    if head.startswith(b"\xff\xd8\xff"):
        return Image("image/jpeg", *_jpeg_size(head))
    if head.startswith((b"GIF87a", b"GIF89a")):
        return Image("image/gif", _little(head[6:8]), _little(head[8:10]))
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return Image("image/webp", *_webp_size(head))
    return Image(SVG) if _SVG.match(head) else None


def _jpeg_size(head: bytes) -> tuple[int, int]:
    """Return width and height from the first segment that says them."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        if head[at + 1] == 0xFF:  # a fill byte
            at += 1
        elif head[at + 1] in _JPEG_SIZES:
            return _big(head[at + 7 : at + 9]), _big(head[at + 5 : at + 7])
        else:
            at += 2 + max(_big(head[at + 2 : at + 4]), 2)
    return 0, 0


def _webp_size(head: bytes) -> tuple[int, int]:
    """Return width and height from the first chunk: lossy, lossless or extended."""
    chunk = head[12:16]
    if chunk == b"VP8 ":
        return _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
    if chunk == b"VP8L":
        bits = _little(head[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8X":
        return _little(head[24:27]) + 1, _little(head[27:30]) + 1
    return 0, 0


def _big(content: bytes) -> int:
    return int.from_bytes(content, "big")


def _little(content: bytes) -> int:
    return int.from_bytes(content, "little")
