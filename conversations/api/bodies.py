"""What clients send: JSON with nothing in it that cannot be kept, or a form with files; and the shape of each body.

Values of JSON are taken as they are: "true" is no boolean and 1 no text. A field that is not known is refused, because
a name that was mistyped must not be taken for one that was left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from django.conf import settings
from django.http import QueryDict
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, RootModel, ValidationError
from pydantic_core import PydanticCustomError
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request

from agents.engine.decisions import PEOPLE_MAY
from conversations.api.errors import Invalid, TooLarge
from conversations.approvals.many import TOGETHER_MOST
from conversations.erasure.conversations import REASON_MOST
from conversations.files.uploads import FILES_MOST, Upload, read_uploads
from conversations.prompts.idempotency import KEY_MOST
from conversations.prompts.listing import TITLE_MOST

B = TypeVar("B", bound=BaseModel)
FILES = "files"
"""The field of a form that holds files."""
DEPTH_MOST = 50
"""Levels of lists and objects in a body. Tools take no deeper input."""


class StrictJSON(BaseParser):  # type: ignore[misc]
    """A body of JSON, of DATA_UPLOAD_MAX_MEMORY_SIZE bytes at most."""

    media_type = "application/json"

    def parse(self, stream: IO[bytes], media_type: str | None = None, context: Mapping[str, Any] | None = None) -> Any:
        """The value. Raises ParseError, TooLarge."""
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        content = stream.read(most + 1)
        if len(content) > most:
            raise TooLarge(f"A body has {most:,} bytes at most.")
        try:
            value = json.loads(content.decode(), parse_constant=_refuse)
        except RecursionError as error:
            raise ParseError(f"The body is nested deeper than {DEPTH_MOST} levels.") from error
        except ValueError as error:
            raise ParseError(f"The body is no valid JSON: {error}.") from error
        _check(value)
        return value


class MultipartBody(MultiPartParser):  # type: ignore[misc]
    """A body of multipart/form-data: fields of text, and files."""

    def parse(self, stream: IO[bytes], media_type: str | None = None, context: Mapping[str, Any] | None = None) -> Any:
        """Fields and files. Raises ParseError."""
        try:
            return super().parse(stream, media_type, context)
        except ParseError as error:
            raise ParseError("The body is no form: its parts cannot be told apart.") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _check(value: Any) -> None:
    """Raise ParseError for what is nested too deep, or no text that a database takes."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEPTH_MOST + 1:
            raise ParseError(f"The body is nested deeper than {DEPTH_MOST} levels.")
        inner: list[Any] = []
        for each in level:
            if isinstance(each, str):
                _check_text(each)
            elif isinstance(each, dict):
                inner += [*each.keys(), *each.values()]
            elif isinstance(each, list):
                inner += each
        level = inner


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParseError("The body has half of a surrogate pair in it, which is no character.") from error


def read(request: Request, shape: type[B]) -> B:
    """The body of a request as `shape`. Raises Invalid, naming each field that is wrong, and what the parser raises.

    A request without a body sends the empty object. Of a form the fields are read; its files are `files_of` it.
    """
    form = isinstance(request.data, QueryDict)
    try:
        return shape.model_validate(_form(request) if form else request.data, strict=not form)
    except ValidationError as error:
        raise Invalid(_fields(error)) from None


def _form(request: Request) -> dict[str, str]:
    """The fields of a form, all of which are text. Raises Invalid for one that is sent twice, or is no place for it."""
    wrong = {name: ["Send it once."] for name, values in request.POST.lists() if len(values) > 1}
    wrong |= {name: ["There is no such file field."] for name in request.FILES if name != FILES}
    if FILES in request.POST:
        wrong[FILES] = ["Send files here, not text."]
    if wrong:
        raise Invalid(wrong)
    return {name: str(value) for name, value in request.POST.items()}


def files_of(request: Request) -> list[Upload]:
    """The files of a form; none where the body is none. Raises BadFile."""
    return read_uploads(request.FILES.getlist(FILES))


def _fields(error: ValidationError) -> dict[str, list[str]]:
    """What is wrong, by the place of the field: "digest", "2.decision"; "" for the whole."""
    fields: dict[str, list[str]] = {}
    for each in error.errors(include_url=False, include_input=False):
        fields.setdefault(".".join(map(str, each["loc"])), []).append(_SAID.get(each["type"]) or f"{each['msg']}.")
    return fields


_SAID = {
    "extra_forbidden": "There is no such field.",
    "missing": "This is needed.",
    "model_type": "Send an object.",
    "nul": "The character NUL cannot be kept.",
}


def request_key(request: Request) -> str:
    """The sender's name for this request (`Idempotency-Key`); "" where none was given. Raises Invalid."""
    key: str | None = request.headers.get("Idempotency-Key")
    if key is None:
        return ""
    if not (key.isascii() and key.isprintable() and 1 <= len(key) <= KEY_MOST):
        raise Invalid({"Idempotency-Key": [f"A key has 1 to {KEY_MOST} visible ASCII characters."]})
    return key


def _no_nul(text: str) -> str:
    if "\x00" in text:
        raise PydanticCustomError("nul", "The character NUL cannot be kept.")
    return text


Text = Annotated[str, AfterValidator(_no_nul)]
Tier = Literal["normal", "high"]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="Of the call as it was shown: `approval.digest`.")]


if TYPE_CHECKING:
    PeopleMay = str
else:  # the words of the table, as the API's description lists them
    PeopleMay = Literal[tuple(decision.value for decision in PEOPLE_MAY)]


class Body(BaseModel):
    """The base of what a client sends."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class NewConversation(Body):
    """A conversation to be. `system_prompt`: the id or the name of one; left out, the site's default."""

    title: Annotated[Text, Field(max_length=200)] = ""
    system_prompt: int | Text | None = None


class ChangedConversation(Body):
    """What is to change of a conversation: its title, and whether it is archived. What is left out stays."""

    title: Annotated[Text, Field(max_length=TITLE_MOST)] | None = None
    archived: bool | None = None


class Erase(Body):
    """Why the conversation is deleted; it stays on record."""

    reason: Annotated[Text, Field(max_length=REASON_MOST)] = ""


class NewPrompt(Body):
    """What is said, and the tier of the model that answers.

    Staff may leave the input out: then the system starts the turn, and it queues; and have the turn not shown.
    """

    input: Text | None = None
    model: Tier = "normal"
    visible: bool = True


class NewPromptWithFiles(NewPrompt):
    """The same as a form, with files; the input may then be left out. They lie in the workspace when the turn runs."""

    files: list[bytes] = Field(default=[], max_length=FILES_MOST)


class Stop(Body):
    """Why the turn is stopped."""

    reason: Annotated[Text, Field(max_length=1000)] = ""


class NoFields(Body):
    """Nothing is to be said: the empty object, or no body."""


class GoOn(Body):
    """The tier for the rest; left out, that of the turn."""

    model: Tier | None = None


class Approve(Body):
    """Approve a call. `input`: with this in the place of the agent's input."""

    digest: Digest
    input: dict[str, Any] | None = None
    note: Annotated[Text, Field(max_length=2000)] = ""
    remember: Literal["conversation"] | None = None


class Reject(Body):
    """Reject a call. The agent is told why."""

    digest: Digest
    reason: Annotated[Text, Field(max_length=2000)] = ""


class Decision(Body):
    """One decision of several. Which are possible depends on `approval.ask`."""

    id: Annotated[int, Field(ge=1, lt=2**63)]
    digest: Digest
    decision: PeopleMay
    input: dict[str, Any] | None = None
    answer: Annotated[Text, Field(max_length=20_000)] | None = None
    reason: Annotated[Text, Field(max_length=2000)] = ""


class Decisions(RootModel[Annotated[list[Decision], Field(min_length=1, max_length=TOGETHER_MOST)]]):
    """Several decisions: more than these are signed without being read."""
