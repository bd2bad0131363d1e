"""Uploads: the files sent with a message, how they are checked, and how they get into record and workspace."""

from __future__ import annotations

import hashlib
import logging
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from django.conf import settings
from django.core.files.base import File as Content
from django.core.files.uploadedfile import UploadedFile

from agents.engine.errors import ToolError
from agents.engine.interfaces.attached import Attachment
from agents.engine.ledger import JSON
from agents.engine.secrets import hide
from agents.plugins.files.box import Box
from agents.plugins.files.status import tool_errors
from conversations.files import storage
from conversations.files.workspaces import folder_of, root
from conversations.models import File, Prompt

logger = logging.getLogger(__name__)
FILES_MOST = 10
"""Files per message."""
MB = 1024 * 1024
_NAME_BYTES = 200
"""Bytes of a name. With a number appended, it still fits the limit of file systems, 255."""
_SUFFIX_BYTES = 20
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,48}/[a-z0-9][a-z0-9!#$&^_.+-]{0,48}")
UNKNOWN_TYPE = "application/octet-stream"


class BadFile(ValueError):
    """A file that cannot be accepted. The message names it, says why, and what to do."""


@dataclass(frozen=True)
class Upload:
    """An uploaded file, checked but not stored yet. `sha256` is the digest of its content."""

    name: str
    media_type: str
    sha256: str
    content: Content[bytes]

    @classmethod
    def of(cls, sent: UploadedFile[bytes]) -> Upload:
        """Check a file of a request. Raises BadFile if it is too large."""
        name = clean_file_name(sent.name or "")
        if (sent.size or 0) > settings.AGENTSITE_UPLOAD_MB * MB:
            raise BadFile(f"{name} is too large. A file can have up to {settings.AGENTSITE_UPLOAD_MB} MB.")
        digest = hashlib.sha256()
        for chunk in sent.chunks():
            digest.update(chunk)
        media_type = (sent.content_type or "").lower()
        return cls(name, media_type if _MEDIA_TYPE.fullmatch(media_type) else UNKNOWN_TYPE, digest.hexdigest(), sent)

    @property
    def identity(self) -> JSON:
        """What identifies the file in the digest of a request: its name and content."""
        return [self.name, self.sha256]


def read_uploads(sent: Sequence[UploadedFile[bytes]]) -> list[Upload]:
    """Check the files of a request. Raises BadFile."""
    if len(sent) > FILES_MOST:
        raise BadFile(
            f"You attached {len(sent)} files; a message can have {FILES_MOST}. Send the others with your next message."
        )
    return [Upload.of(each) for each in sent]


def clean_file_name(name: str) -> str:
    """Return a safe file name: printable characters only, no slash, no leading dot, at most 200 bytes, none of the
    site's secrets; "file" if nothing is left.

    Characters that are invisible or reverse the text could make one name look like another.
    """
    plain = "".join(each for each in unicodedata.normalize("NFC", name) if each.isprintable())
    plain = hide(plain).replace("/", "_").replace("\\", "_").strip().lstrip(". ")
    suffix = PurePosixPath(plain).suffix
    if len(suffix.encode()) > _SUFFIX_BYTES:
        suffix = ""
    stem = plain[: len(plain) - len(suffix)].encode()[: _NAME_BYTES - len(suffix.encode())]
    return f"{stem.decode(errors='ignore')}{suffix}" or "file"


@contextmanager
def pending(uploads: Sequence[Upload]) -> Iterator[PendingUploads]:
    """Store uploads that belong to no conversation yet. They are removed again on exit, unless `keep` was called."""
    with ExitStack() as undoing:
        stored = PendingUploads(undoing)
        for upload in uploads:
            with _storing(upload.name):
                stored.add(upload)
        yield stored


class PendingUploads:
    """Uploads on their way into a conversation.

    Everything slow happens before the transaction, which blocks all other writers: the content is written to Django's
    storage, and once more beside the workspaces. Inside the transaction, the copies only get their names, before the
    turn can run: the rows and the turn's call are committed together, or nothing remains.
    """

    def __init__(self, undoing: ExitStack) -> None:
        self._undoing = undoing
        self._rows: list[File] = []
        self._parts: list[Path] = []

    def add(self, upload: Upload) -> None:
        """Store an upload, before the transaction."""
        row = File(name=upload.name, media_type=upload.media_type, size=upload.content.size, sha256=upload.sha256)
        self._rows.append(row)
        self._undoing.callback(_undo, row.name, lambda: row.content.delete(save=False))
        storage.store(row, upload.content)
        with row.content.open("rb") as content:
            part = Box(root()).part(content.chunks())
        self._parts.append(part)
        self._undoing.callback(_undo, part.name, partial(part.unlink, missing_ok=True))

    def attach(self, prompt: Prompt) -> list[Attachment]:
        """Move the copies into the workspace and store the rows, in the transaction that stores the prompt.

        Raises BadFile for a file that the workspace refuses.
        """
        for row, part in zip(self._rows, self._parts, strict=True):
            row.conversation_id, row.prompt = prompt.conversation_id, prompt
            box = Box(folder_of(prompt.conversation_id))
            with _storing(row.name):
                row.path = box.adopt(row.name, part)
            self._undoing.callback(_undo, row.name, partial(box.remove, row.path))
            row.save(force_insert=True)
        return [_attached(row) for row in self._rows]

    def keep(self, prompt: Prompt) -> None:
        """Keep the files if they belong to this prompt. A repeated request may have stored another prompt first."""
        if all(row.prompt is prompt for row in self._rows):
            self._undoing.pop_all()


@contextmanager
def _storing(name: str) -> Iterator[None]:
    """Raise BadFile if the file of this name cannot be stored."""
    try:
        with tool_errors(name):
            yield
    except ToolError as error:
        logger.warning("an uploaded file could not be stored: %s", error, exc_info=True)
        why = _WHY.get(error.code, str(error).rstrip("."))
        raise BadFile(f"{name} could not be stored: {why}. Nothing was sent.") from error


_NO_FOLDER = "its place in the workspace is no longer a folder; tell whoever runs the site"
_WHY = {
    "full": "the site's disk is full; tell whoever runs the site",
    "forbidden": "the site may not write to its folder; tell whoever runs the site",
    "link": _NO_FOLDER,
    "not_a_folder": _NO_FOLDER,
}
"""What people read, by the code of the error, whose own message is meant for models."""


def _undo(name: str, remove: Callable[[], object]) -> None:
    """Remove something again. An error is logged: it must not hide the one that led here."""
    try:
        remove()
    except Exception:
        logger.exception("a rejected upload could not be removed: %r", name)


@dataclass(frozen=True)
class ReusedFiles:
    """The files of an earlier prompt, attached to a new one. Contents and copies in the workspace are shared."""

    earlier: Prompt

    def attach(self, prompt: Prompt) -> list[Attachment]:
        """Store rows of these files for this prompt, in the transaction that stores it."""
        for row in self.earlier.files.order_by("pk"):
            row.pk, row.prompt = None, prompt
            row.save(force_insert=True)
        return attached([prompt]).get(prompt.pk, [])


def attached(prompts: Collection[Prompt]) -> dict[int | None, list[Attachment]]:
    """Return the files uploaded with these prompts, by prompt, in the form their turns' calls record."""
    found: dict[int | None, list[Attachment]] = {}
    for row in File.objects.filter(prompt__in=prompts).order_by("pk"):
        found.setdefault(row.prompt_id, []).append(_attached(row))
    return found


def _attached(row: File) -> Attachment:
    return Attachment(row.pk, row.name, row.size, row.path)
