"""Files that people give with a message: what is taken, and how they come into the record and into the workspace."""

from __future__ import annotations

import hashlib
import logging
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

from django.conf import settings
from django.core.files.base import File as Content
from django.core.files.uploadedfile import UploadedFile

from agents.engine.errors import ToolError
from agents.engine.interfaces.attached import Attached
from agents.engine.ledger import JSON
from agents.engine.secrets import hide
from agents.plugins.files.box import Box
from agents.plugins.files.status import tool_errors
from conversations.files import storage
from conversations.files.workspaces import folder_of, root
from conversations.models import File, Prompt

logger = logging.getLogger(__name__)
FILES_MOST = 10
"""Files of one message."""
MB = 1024 * 1024
_NAME_BYTES = 200
"""Of a name: with a number behind it it still fits into a folder, where 255 is the limit."""
_SUFFIX_BYTES = 20
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,48}/[a-z0-9][a-z0-9!#$&^_.+-]{0,48}")
UNKNOWN_TYPE = "application/octet-stream"


class BadFile(ValueError):
    """A file that cannot be taken; the message names it and says why and what to do."""


@dataclass(frozen=True)
class Upload:
    """A file as it was sent: checked, not stored yet. `sha256` is that of its content."""

    name: str
    media_type: str
    sha256: str
    content: Content[bytes]

    @classmethod
    def of(cls, sent: UploadedFile[bytes]) -> Upload:
        """One that a request brought. Raises BadFile for one that is too large."""
        name = cleaned(sent.name or "")
        if (sent.size or 0) > settings.AGENTSITE_UPLOAD_MB * MB:
            raise BadFile(f"{name} is too large: a file may have {settings.AGENTSITE_UPLOAD_MB} MB.")
        digest = hashlib.sha256()
        for chunk in sent.chunks():
            digest.update(chunk)
        told = (sent.content_type or "").lower()
        return cls(name, told if _MEDIA_TYPE.fullmatch(told) else UNKNOWN_TYPE, digest.hexdigest(), sent)

    @property
    def named(self) -> JSON:
        """What tells it from other files, for the digest of a request."""
        return [self.name, self.sha256]


def uploads(sent: Sequence[UploadedFile[bytes]]) -> list[Upload]:
    """The files that a request brought. Raises BadFile."""
    if len(sent) > FILES_MOST:
        raise BadFile(f"These are {len(sent)} files; a message takes {FILES_MOST}. Send the others with the next one.")
    return [Upload.of(each) for each in sent]


def cleaned(name: str) -> str:
    """A name as it is kept: visible characters alone, no slash, no dot in front, 200 bytes, none of the site's secrets;
    "file" where nothing is left.

    What cannot be seen, or turns text round, could make one name look like another.
    """
    plain = "".join(each for each in unicodedata.normalize("NFC", name) if each.isprintable())
    plain = hide(plain).replace("/", "_").replace("\\", "_").strip().lstrip(". ")
    suffix = PurePosixPath(plain).suffix
    if len(suffix.encode()) > _SUFFIX_BYTES:
        suffix = ""
    stem = plain[: len(plain) - len(suffix)].encode()[: _NAME_BYTES - len(suffix.encode())]
    return f"{stem.decode(errors='ignore')}{suffix}" or "file"


class Giving:
    """Files on their way into a conversation. What was stored of them goes again unless they are kept.

    All that takes long is done before the transaction, which stops every other writer: their content lies in Django's
    storage, and once more beside the workspaces. In it the copies get their names, before the turn can run: the row and
    the turn's call become true together, or nothing is left.
    """

    def __init__(self, given: Sequence[Upload]) -> None:
        self._given = given
        self._rows: list[File] = []
        self._parts: list[Path] = []
        self._kept = False

    def __enter__(self) -> Self:
        try:
            for upload in self._given:
                with _storing(upload.name):
                    self._store(upload)
        except BaseException:
            self._undo()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._kept:
            self._undo()

    def attach(self, prompt: Prompt) -> list[Attached]:
        """Name their copies in the workspace and store their rows, in the transaction that stores the prompt.

        Raises BadFile for one that the workspace does not take.
        """
        for row, part in zip(self._rows, self._parts, strict=True):
            row.conversation_id, row.prompt = prompt.conversation_id, prompt
            with _storing(row.name):
                row.path = Box(folder_of(prompt.conversation_id)).adopt(row.name, part)
            row.save(force_insert=True)
        return [_attached(row) for row in self._rows]

    def keep(self, prompt: Prompt) -> None:
        """Keep them, if it is this prompt that they came with: the same request may have been faster."""
        self._kept = all(row.prompt is prompt for row in self._rows)

    def _store(self, upload: Upload) -> None:
        row = File(name=upload.name, media_type=upload.media_type, size=upload.content.size, sha256=upload.sha256)
        self._rows.append(row)
        storage.store(row, upload.content)
        with row.content.open("rb") as content:
            self._parts.append(Box(root()).part(content.chunks()))

    def _undo(self) -> None:
        for row in self._rows:
            if row.path:
                with _logged(row.name):
                    Box(folder_of(row.conversation_id)).remove(row.path)
            if row.content:
                with _logged(row.name):
                    row.content.delete(save=False)
        for part in self._parts:
            with _logged(part.name):
                part.unlink(missing_ok=True)


@contextmanager
def _storing(name: str) -> Iterator[None]:
    """Raise BadFile where the file of this name cannot be stored."""
    try:
        with tool_errors(name):
            yield
    except ToolError as error:
        logger.warning("a file that was given could not be stored: %s", error, exc_info=True)
        why = _WHY.get(error.code, str(error).rstrip("."))
        raise BadFile(f"{name} could not be stored: {why}. Nothing was sent.") from error


_NO_FOLDER = "the place for it is no folder any more; tell whoever runs the site"
_WHY = {
    "full": "the site's disk is full; tell whoever runs the site",
    "forbidden": "the folder for it is closed to the site; tell whoever runs the site",
    "link": _NO_FOLDER,
    "not_a_folder": _NO_FOLDER,
}
"""By the code of the error: what is said in the place of its words, which are for models."""


@contextmanager
def _logged(name: str) -> Iterator[None]:
    """Go on after an error, which is logged: it must not hide the one for which this is done."""
    try:
        yield
    except Exception:
        logger.exception("left behind of a file that was not taken: %r", name)


@dataclass(frozen=True)
class Regiving:
    """The files of an earlier prompt of the conversation: the content and the copy in the workspace are those."""

    earlier: Prompt

    def attach(self, prompt: Prompt) -> list[Attached]:
        """Store rows that name them with this prompt, in the transaction that stores it."""
        for row in self.earlier.files.order_by("pk"):
            row.pk, row.prompt = None, prompt
            row.save(force_insert=True)
        return attached([prompt]).get(prompt.pk, [])


def attached(prompts: Collection[Prompt]) -> dict[int | None, list[Attached]]:
    """The files that were given with these prompts, by prompt, as their turns' calls record them."""
    found: dict[int | None, list[Attached]] = {}
    for row in File.objects.filter(prompt__in=prompts).order_by("pk"):
        found.setdefault(row.prompt_id, []).append(_attached(row))
    return found


def _attached(row: File) -> Attached:
    return Attached(row.pk, row.name, row.size, row.path)
