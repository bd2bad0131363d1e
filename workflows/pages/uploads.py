"""Files in the form of a workflow: those that are uploaded before it starts, and what their fields show.

A form posts the token of an uploaded file as the text of its field, and a file that is chosen beside it. Such a file is
stored first, by whatever button the form was sent, and whatever else happens the form comes back with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest
from django.utils.crypto import salted_hmac

from agents.engine.errors import ToolError
from agents.engine.ledger import JSON
from agents.plugins.files.box import Box
from agents.plugins.files.usage import readable
from conversations.database.busy import DatabaseBusy, reporting_busy
from conversations.database.disk import DiskFull, reporting_full
from conversations.display.schema_form import FormField, SchemaForm, properties_of
from conversations.files import pending, storage
from conversations.files.uploads import GONE, BadFile, Upload
from conversations.models import Conversation, Prompt
from workflows.definition import Workflow
from workflows.files import FILE, FOLDER, UPLOADED, format_of, upload_fields

CHOOSE = "Choose a file."
NOT_HERE = "The file of that run is no longer here. Choose it again."
ONE = "This field takes one file, so nothing was uploaded. Choose one."
PATHS_MOST, DEPTH_MOST = 200, 6
"""Paths that a field proposes, and how deep they lie in the workspace."""
Errors = dict[str, list[str]]
"""What is wrong with fields, by their names."""
_TYPED = ("line", "file", "workspace-file", "workspace-folder")
"""The kinds of fields whose text is a path or a token; others show as JSON what is neither."""


@dataclass(frozen=True)
class FileField(FormField):
    """The field of an uploaded file. Its text is a token, and `chosen` the file of that name, if there is one."""

    chosen: Upload | None = None

    template: ClassVar[str] = "workflows/file_field.html"

    @property
    def picker(self) -> str:
        """The name under which the file itself is sent."""
        return _picker(self.key)

    @property
    def size(self) -> str:
        """The size of the chosen file, for people."""
        return readable(self.chosen.size) if self.chosen else ""

    @property
    def mb(self) -> int:
        """The maximum size of a file, in MB."""
        return settings.AGENTSITE_UPLOAD_MB


@dataclass(frozen=True)
class PathField(FormField):
    """The field of a path in the workspace. `paths` are those that the chosen chat has."""

    paths: Sequence[str] = ()

    template: ClassVar[str] = "workflows/workspace_file_field.html"


def _picker(key: str) -> str:
    return f"{key}-upload"


def with_files(
    fields: Sequence[FormField], workflow: Workflow, user: User, chat: Conversation | None
) -> list[FormField]:
    """Return the fields of the workflow's form, those of files as FileField and PathField.

    `chat`: in whose workspace it would run; None: in a new one, which has no files to propose.
    """
    return [_with_file(each, workflow, user, chat) for each in fields]


def _with_file(field: FormField, workflow: Workflow, user: User, chat: Conversation | None) -> FormField:
    kind = format_of(properties_of(workflow.schema).get(field.name, {}))
    if field.kind not in _TYPED:
        return field
    if kind == UPLOADED:
        chosen = pending.find(user, field.text)
        gone = [GONE] if field.text and not chosen else []
        changed = {"kind": "file", "text": field.text if chosen else "", "errors": field.errors or gone}
        return FileField(**vars(field) | changed, chosen=chosen)
    if kind in (FILE, FOLDER):
        paths = list(paths_in(chat, folders=kind == FOLDER)) if chat else []
        return PathField(**vars(field) | {"kind": kind}, paths=paths)
    return field


def paths_in(chat: Conversation, *, folders: bool) -> Iterator[str]:
    """Yield the paths of files, or of folders, in the workspace of a chat: the first ones, by name."""
    box = Box(Path(settings.AGENTSITE_WORKSPACES, str(chat.pk)))
    wanted = "folder" if folders else "file"
    try:
        found = (each.path for each in box.walk(depth=DEPTH_MOST, most=PATHS_MOST) if each.kind == wanted)
        yield from islice(found, PATHS_MOST)
    except ToolError:  # it has none yet, or a command has just moved it
        return


def receive(workflow: Workflow, request: HttpRequest, user: User) -> tuple[dict[str, str], Errors]:
    """Store the files that were sent with a form. Return its texts, with their tokens, and why some were not stored.

    The latter by name of the field, which keeps the file that it had. The button `remove` takes away that of a field.
    """
    posted = {name: str(text) for name, text in request.POST.items()}
    wrong: Errors = {}
    names = set(upload_fields(workflow.input).values())
    for field in SchemaForm(workflow.schema, {}, posted).fields if names else ():
        if field.name not in names:
            continue
        sent = request.FILES.getlist(_picker(field.key))
        posted.pop(_picker(field.key), None)  # browsers send an empty text where none is chosen
        if posted.get("remove") == field.key and not sent:
            pending.discard(user, posted.pop(field.key, ""))
        try:
            if sent:
                token, before = _store(user, sent, posted.get("key", ""), field.key), posted.get(field.key, "")
                if before != token:
                    pending.discard(user, before)
                posted[field.key] = token
        except (BadFile, DatabaseBusy, DiskFull) as error:
            wrong[field.name] = [str(error)]
    return posted, wrong


def _store(user: User, sent: Sequence[UploadedFile[bytes]], form: str, field: str) -> str:
    """Store the file that was sent for a field, and return its token. Raises BadFile, DatabaseBusy, DiskFull.

    The same file of the same form gets the same token: if the form is sent twice, both requests say the same.
    """
    if len(sent) > 1:
        raise BadFile(ONE)
    upload = Upload.of(sent[0])
    where = f"{user.pk} {form} {field} {upload.sha256} {upload.name}"
    token = salted_hmac("workflows.pages.uploads", where, algorithm="sha256").hexdigest() if form else ""
    with reporting_busy(), reporting_full():
        return pending.keep(user, upload, token).token


def in_words(errors: Mapping[str, list[str]], workflow: Workflow, refused: Mapping[str, list[str]]) -> Errors:
    """Return the errors of a form, with words of their own for files. `refused`: why some were not stored."""
    names = upload_fields(workflow.input).values()
    return {name: refused.get(name, [CHOOSE]) if name in names else why for name, why in errors.items()}


def earlier_files(input: Mapping[str, JSON], workflow: Workflow, run: Prompt) -> tuple[dict[str, JSON], Errors]:
    """Return the input of an earlier run with what names its uploaded files, so that another run gets copies of them.

    Also, by field, which are gone, such as one that was redacted.
    """
    names = {file.path: f"{pending.EARLIER}{file.pk}" for file in run.files.all() if storage.exists(file)}
    given = {
        name: str(path) for name, path in input.items() if path is not None and name in upload_fields(workflow.input)
    }
    found: dict[str, JSON] = {name: names[path] for name, path in given.items() if path in names}
    gone = {name: [NOT_HERE] for name in given if name not in found}
    return {name: value for name, value in input.items() if name not in gone} | found, gone
