"""Downloads as the web server sends them: in chunks, whatever the size of the file."""

from __future__ import annotations

import asyncio
import hashlib
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.handlers.asgi import ASGIHandler

from conversations.models import File
from conversations.prompts.start import start_conversation
from tests.conversations.listening import aside, cookie

pytestmark = pytest.mark.django_db(transaction=True)
SIZE = 32 * 2**20
"""Size of a file in bytes that should never be in memory as a whole."""
HELD_MOST = SIZE // 8


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> None:
    """A data folder of this test's own."""
    settings.MEDIA_ROOT = tmp_path


def large(owner: User) -> File:
    """A file of zeros with a word at its end."""
    file = File(conversation=start_conversation(owner), name="large.bin", media_type="x/y", size=SIZE, sha256="0" * 64)
    file.content.save("large", ContentFile(b"\0"))
    with Path(file.content.path).open("r+b") as stream:
        stream.truncate(SIZE - 3)
        stream.seek(0, 2)
        stream.write(b"end")
    return file


class Taking:
    """A client of the ASGI application that receives everything and keeps nothing."""

    def __init__(self, address: str, session: str, method: str = "GET", pieces_most: int = 2**31) -> None:
        headers = [(b"host", b"testserver"), (b"cookie", f"sessionid={session}".encode())]
        self.scope: dict[str, Any] = {
            "type": "http", "method": method, "path": address, "query_string": b"", "headers": headers,
        }  # fmt: skip
        self.headers: dict[bytes, bytes] = {}
        self.status = self.length = self.pieces = 0
        self.digest = hashlib.sha256()
        self._asked, self._left, self._most = False, asyncio.Event(), pieces_most

    async def run(self) -> None:
        """Request a file, and receive it to the end or up to a number of chunks."""
        await ASGIHandler()(self.scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        if self._asked:
            await self._left.wait()
            return {"type": "http.disconnect"}
        self._asked = True
        return {"type": "http.request", "body": b""}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
            return
        body = message.get("body", b"")
        self.length += len(body)
        self.digest.update(body)
        self.pieces += 1
        if self.pieces == self._most or not message.get("more_body"):
            self._left.set()


@pytest.mark.parametrize("address", ["/files/{}/", "/api/files/{}/"])
async def test_a_file_of_any_size_is_never_held_whole(ann: User, address: str) -> None:
    """The file arrives whole, with its length in advance, and only a small part of it in memory at a time."""
    file, session = await aside(large, ann), await aside(cookie, ann)
    await Taking(address.format(file.pk), session).run()  # imports and caches are no part of what is measured
    taking = Taking(address.format(file.pk), session)
    tracemalloc.start()
    try:
        await taking.run()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (taking.status, taking.length, int(taking.headers[b"Content-Length"])) == (200, SIZE, SIZE)
    assert taking.digest.digest() == hashlib.sha256(bytes(SIZE - 3) + b"end").digest()
    assert peak < HELD_MOST


async def test_a_file_is_read_as_far_as_it_is_taken(ann: User) -> None:
    """A client that disconnects halfway costs nothing more."""
    file, session = await aside(large, ann), await aside(cookie, ann)
    taking = Taking(f"/files/{file.pk}/", session, pieces_most=3)
    await taking.run()
    assert taking.length < HELD_MOST
