"""Files for tests, and small ones of each kind."""

from __future__ import annotations

import hashlib
import struct
import zlib

from django.core.files.base import ContentFile

from conversations.files import storage
from conversations.models import Conversation, File, Prompt

GIF = b"GIF89a" + struct.pack("<HH", 3, 2) + b"\x00\x00\x00,\x00\x00\x00\x00\x03\x00\x02\x00\x00\x02\x02\x84Q\x00;"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8"/></svg>'


def png(width: int = 4, height: int = 3) -> bytes:
    """A grey PNG."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x88" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def pdf(words: str = "Hello") -> bytes:
    """A PDF of one page with these words."""
    text = f"BT /F1 24 Tf 20 100 Td ({words}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    whole, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(whole))
        whole += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(whole)
    return whole + b"xref\n0 6\n0000000000 65535 f \n" + table + end


def filed(
    conversation: Conversation,
    name: str,
    content: bytes,
    media_type: str = "application/octet-stream",
    *,
    prompt: Prompt | None = None,
    path: str = "",
) -> File:
    """A file of a conversation, stored as uploads and tools store theirs."""
    digest = hashlib.sha256(content).hexdigest()
    about = {"name": name, "media_type": media_type, "path": path}
    file = File(conversation=conversation, prompt=prompt, size=len(content), sha256=digest, **about)
    storage.store(file, ContentFile(content))
    file.save()
    return file
