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
from typing import Self

from django.conf import settings
from django.core.files.base import File as Content
from django.core.files.uploadedfile import UploadedFile
from django.db.models.fields.files import FieldFile

from agents.engine.errors import ToolError
from agents.engine.interfaces.attached import Attachment
from agents.engine.secrets import hide
from agents.plugins.files.box import Box
from agents.plugins.files.status import tool_errors
from agents.plugins.files.usage import readable
from conversations.files import storage
from conversations.files.workspaces import folder_of, root
from conversations.models import Conversation, File, PendingFile, Prompt
from conversations.usage.storage import MB, OverStorage, check, keep_measure

logger = logging.getLogger(__name__)
FILES_MOST = 10
"""Files per message."""
_NAME_BYTES = 200
"""Bytes of a name. With a number appended, it still fits the limit of file systems, 255."""
_SUFFIX_BYTES = 20
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,48}/[a-z0-9][a-z0-9!#$&^_.+-]{0,48}")
UNKNOWN_TYPE = "application/octet-stream"
GONE = "This file is no longer here. Uploaded files are kept for a day, and a run takes its own. Upload it again."


class BadFile(ValueError):
    """A file that cannot be accepted. The message names it, says why, and what to do."""


@dataclass(frozen=True)
class Upload:
    """An uploaded file, checked but not given yet. `sha256` is the digest of its content, `size` its bytes.

    `pending`: the id of the PendingFile that it is so far, whose content is stored already; None: it is stored anew.
    """

    name: str
    media_type: str
    sha256: str
    size: int
    content: Content[bytes]
    pending: int | None = None

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
        known = media_type if _MEDIA_TYPE.fullmatch(media_type) else UNKNOWN_TYPE
        return cls(name, known, digest.hexdigest(), sent.size or 0, sent)


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


class PendingUploads:
    """Uploads on their way into a conversation. Whatever was stored is removed again on exit, unless `keep` was called.

    Everything slow happens before the transaction, which blocks all other writers: the content is written to Django's
    storage, and once more beside the workspaces. Inside the transaction, the copies only get their names, before the
    turn can run: the rows and the turn's call are committed together, or nothing remains.
    """

    def __init__(self, given: Sequence[Upload]) -> None:
        self._given = given
        self._undoing = ExitStack()
        self._rows: list[File] = []
        self._parts: list[Path] = []

    def __enter__(self) -> Self:
        with self._undoing:  # all of it, if one fails
            for upload in self._given:
                with storing(upload.name):
                    self._store(upload)
            self._undoing = self._undoing.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._undoing.close()

    def attach(self, prompt: Prompt) -> list[Attachment]:
        """Move the copies into the workspace and store the rows, in the transaction that stores the prompt.

        Raises BadFile for a file that the workspace refuses, for a pending one that another run has taken, and if the
        workspace or the person has no space left.
        """
        for upload in self._given:
            if upload.pending and not PendingFile.objects.filter(pk=upload.pending).delete()[0]:
                raise BadFile(GONE)
        self._check_space(prompt.conversation_id, prompt.conversation.owner_id)
        for row, part in zip(self._rows, self._parts, strict=True):
            row.conversation_id, row.prompt = prompt.conversation_id, prompt
            box = Box(folder_of(prompt.conversation_id))
            with storing(row.name):
                row.path = box.adopt(row.name, part)
            self._undoing.callback(_undo, row.name, partial(box.remove, row.path))
            row.save(force_insert=True)
        return [_attached(row) for row in self._rows]

    def _check_space(self, conversation: int, owner: int) -> None:
        """Raise BadFile if there is no space for the files. Each is kept twice: in the record, and in the workspace."""
        more = sum(row.size for row in self._rows)
        if not more:
            return
        try:
            check(owner, 2 * more)
        except OverStorage as error:
            raise BadFile(f"The files could not be stored: {error}. Nothing was sent.") from error
        most = settings.AGENTSITE_WORKSPACE_MB * MB
        held = Conversation.objects.values_list("workspace_bytes", flat=True).get(pk=conversation)
        if held + more > most:
            raise BadFile(
                f"The files could not be stored: the workspace of this conversation may hold {readable(most)}, and has "
                f"{readable(held)}. Ask the agent to remove files, or start a new conversation. "
                "Nothing was sent."
            )
        keep_measure(conversation, held + more)

    def keep(self, prompt: Prompt) -> None:
        """Keep the files if they belong to this prompt. A repeated request may have stored another prompt first."""
        if all(row.prompt is prompt for row in self._rows):
            self._undoing.pop_all()

    def _store(self, upload: Upload) -> None:
        row = File(name=upload.name, media_type=upload.media_type, size=upload.size, sha256=upload.sha256)
        self._rows.append(row)
        if upload.pending:
            row.content.name = upload.content.name
        else:
            self._undoing.callback(_undo, row.name, lambda: row.content.delete(save=False))
            storage.store(row, upload.content)
            if isinstance(upload.content, FieldFile):
                upload.content.close()
        with row.content.open("rb") as content:
            part = Box(root()).part(content.chunks())
        self._parts.append(part)
        self._undoing.callback(_undo, part.name, partial(part.unlink, missing_ok=True))


@contextmanager
def storing(name: str) -> Iterator[None]:
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
