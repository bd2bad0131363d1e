"""Smaller pictures: 256 colours of a page, in place of all of them."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice

HEAD = b"\x89PNG\r\n\x1a\n"
MOST = 256
Colour = tuple[int, int, int]


def reduced(png: bytes) -> bytes:
    """The picture with a palette. Takes what a browser writes: 8 bits for each of red, green and blue, no interlacing.

    A colour that is not kept becomes the nearest that is. Raises ValueError for another kind.
    """
    chunks = list(_chunks(png))
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if (depth, kind, interlaced) != (8, 2, 0):
        raise ValueError("not a picture as a browser writes it")
    rows = _rows(zlib.decompress(b"".join(data for name, data in chunks if name == b"IDAT")), width * 3, height)
    pixels = [list(zip(row[::3], row[1::3], row[2::3], strict=True)) for row in rows]
    used = Counter(colour for row in pixels for colour in row)
    palette = _palette(used)
    place = {colour: at for at, colour in enumerate(palette)}
    place |= {colour: _nearest(colour, palette) for colour in used if colour not in place}
    lines = b"".join(b"\0" + bytes(place[colour] for colour in row) for row in pixels)
    made = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", bytes(part for colour in palette for part in colour)),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    return HEAD + b"".join(_chunk(name, data) for name, data in made)


def _palette(used: Counter[Colour]) -> list[Colour]:
    """The colours to keep: of each sixteenth of red, green and blue the most frequent, then whatever is frequent.

    By frequency alone the greys at the edges of letters would leave no room for the one blue dot of a page.
    """
    kept: dict[Colour, Colour] = {}
    for colour, _ in used.most_common():
        kept.setdefault((colour[0] // 16, colour[1] // 16, colour[2] // 16), colour)
    first = list(kept.values())[:MOST]
    frequent = (colour for colour, _ in used.most_common(2 * MOST) if colour not in first)
    return [*first, *islice(frequent, MOST - len(first))]


def _nearest(colour: Colour, palette: list[Colour]) -> int:
    red, green, blue = colour
    return min(
        range(len(palette)),
        key=lambda at: (palette[at][0] - red) ** 2 + (palette[at][1] - green) ** 2 + (palette[at][2] - blue) ** 2,
    )


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(HEAD)
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _rows(data: bytes, length: int, height: int) -> Iterator[bytearray]:
    """The rows without their filters (PNG specification, 9.2); a pixel has three bytes."""
    above = bytearray(length)
    for number in range(height):
        begin = number * (length + 1)
        row = bytearray(data[begin + 1 : begin + 1 + length])
        _unfilter(data[begin], row, above)
        yield row
        above = row


def _unfilter(kind: int, row: bytearray, above: bytearray) -> None:
    for at in range(len(row)) if kind else ():
        left, up, corner = (row[at - 3], above[at], above[at - 3]) if at > 2 else (0, above[at], 0)
        row[at] = (row[at] + (left, up, (left + up) // 2, _paeth(left, up, corner))[kind - 1]) & 255


def _paeth(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda each: abs(guess - each))
