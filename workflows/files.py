"""Files as inputs of workflows: the types that authors use, and the files that people give for them.

    class Sums(BaseModel):
        table: UploadedFile
        folder: WorkspaceFolder = "."

To programs, each is the path of a file or folder, relative to the workspace of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError

from agents.engine.errors import RegistryError, ToolError
from agents.engine.ledger import JSON
from agents.engine.schema import input_names, schema_of
from agents.plugins.files.box import file_parts, parts

if TYPE_CHECKING:  # workflows are tested without a site, and there are no tables then
    from django.contrib.auth.models import User

    from conversations.files.uploads import Upload

UPLOADED, FILE, FOLDER = "uploaded-file", "workspace-file", "workspace-folder"
"""The formats in the JSON Schemas of these types."""
UPLOADS_MOST = 10
"""Fields for uploaded files in one input: a turn is given no more files."""
NO_FILE = "Upload a file for this, and give its token."
TWICE = "The same upload is given in another field. Upload it once for each."


@dataclass(frozen=True)
class _Format:
    """The format of a text in its JSON Schema."""

    name: str

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "format": self.name}


def _path(read: Callable[[str], object], wanted: str) -> Callable[[str], str]:
    def check(path: str) -> str:
        """Return the path. Raises PydanticCustomError, in words for people."""
        if not path.isprintable():
            raise _refused("The path has characters that cannot be seen")
        if not path:
            raise _refused(wanted)
        try:
            read(path)
        except ToolError as error:
            raise _refused(str(error).rstrip(".")) from None
        return path

    return check


def _refused(why: str) -> PydanticCustomError:
    return PydanticCustomError("path", "{why}", {"why": why})


_file = AfterValidator(_path(file_parts, "Give the path of a file in the workspace"))
_folder = AfterValidator(_path(parts, "Give the path of a folder in the workspace; a dot stands for all of it"))

UploadedFile = Annotated[str, _file, _Format(UPLOADED)]
"""A file that a person uploads in the form. The run has it in its workspace; the value is its path there."""
WorkspaceFile = Annotated[str, _file, _Format(FILE)]
"""The path of a file in the workspace. Whether there is one is for the function to find out."""
WorkspaceFolder = Annotated[str, _folder, _Format(FOLDER)]
"""The path of a folder in the workspace; `.` is all of it."""


@cache
def upload_fields(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the names under which an input may give an uploaded file, each with its name in the schema."""
    named = [input_names(name, field) for name, field in model.model_fields.items()]
    uploads = [keys for keys in named if format_of(_field_schema(model, keys[0])) == UPLOADED]
    return {str(key): str(keys[0]) for keys in uploads for key in keys}


def _field_schema(model: type[BaseModel], name: str | int) -> Any:
    known = schema_of(model).get("properties")
    return known.get(str(name), {}) if isinstance(known, dict) else {}


def format_of(schema: Any) -> str:
    """Return the format that this JSON Schema of a field has, or that beside null; "" for none."""
    either = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    return str(either[0].get("format", "")) if len(either) == 1 else ""


def check_files(model: type[BaseModel], where: str) -> None:
    """Raise RegistryError if this input of a workflow has an uploaded file where no form could ask for it."""
    schema, fields = schema_of(model), set(upload_fields(model).values())
    known = schema.get("properties")
    rest = {name: each for name, each in known.items() if name not in fields} if isinstance(known, dict) else {}
    if UPLOADED in _formats([rest, schema.get("$defs", {})]):
        raise RegistryError(
            f"{where} has an UploadedFile inside a list or another model: make it a field of the input itself, typed"
            " UploadedFile or UploadedFile | None; for several files, several fields"
        )
    if len(fields) > UPLOADS_MOST:
        raise RegistryError(f"{where} takes {len(fields)} uploaded files; a run can be given {UPLOADS_MOST}")
    for name, field in model.model_fields.items():
        if input_names(name, field)[0] in fields and (field.default_factory or isinstance(field.default, str)):
            raise RegistryError(f"{where}: the uploaded file {name!r} can have no default but None")


def _formats(schema: Any) -> Iterator[str]:
    """Yield each format in a schema, at any depth."""
    if isinstance(schema, dict) and isinstance(schema.get("format"), str):
        yield schema["format"]
    for each in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _formats(each)


def given_files(
    model: type[BaseModel], input: dict[str, JSON], user: User
) -> tuple[dict[str, JSON], dict[str, Upload], dict[str, list[str]]]:
    """Return an input with the names of its uploaded files in place of their tokens, the files, and what is wrong.

    The last two are by field. Whatever is no text is left to the model to refuse.
    """
    from conversations.files import pending
    from conversations.files.uploads import GONE

    named, files, wrong = dict(input), dict[str, "Upload"](), dict[str, list[str]]()
    seen = set[str]()
    for key in upload_fields(model):
        token = input.get(key)
        if not isinstance(token, str):
            continue
        if found := pending.find(user, token):
            named[key], files[key] = found.name, found
        if not found or token in seen:
            wrong[key] = [TWICE if token in seen else GONE if token else NO_FILE]
        seen.add(token)
    return named, files, wrong
