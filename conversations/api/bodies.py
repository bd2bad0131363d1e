"""Request bodies: strict JSON, or a form with files, and the model of each body.

JSON values are not converted: "true" is not a boolean and 1 is not a string. Unknown fields are refused, so that a
misspelled name is not taken for one that was left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from django.conf import settings
from django.http import QueryDict
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError, from_json
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request

from agents.engine import complaints
from agents.engine.decisions import PEOPLE_MAY
from agents.engine.grants.conditions import CONDITIONS_MOST, Condition, Operator
from agents.engine.grants.grant import Scope
from conversations.api.errors import Invalid, RequestRefused
from conversations.approvals.grants import USES_MOST, Remember
from conversations.approvals.many import TOGETHER_MOST
from conversations.erasure.conversations import REASON_MOST
from conversations.files.uploads import FILES_MOST, Upload, read_uploads
from conversations.prompts.idempotency import KEY_MOST, OWN
from conversations.prompts.listing import TITLE_MOST

B = TypeVar("B", bound=BaseModel)
FILES = "files"
"""The name of the form field that holds files."""
DEPTH_MOST = 50
"""The maximum nesting of lists and objects in a body. Tools accept no deeper input."""
TOO_DEEP = f"The body is nested deeper than {DEPTH_MOST} levels."

UNREADABLE = (
    "The body is not a valid form: its parts cannot be read. Their headers may be short, and name no charset but UTF-8."
)


class StrictJSON(BaseParser):  # type: ignore[misc]
    """A JSON body of at most DATA_UPLOAD_MAX_MEMORY_SIZE bytes."""

    media_type = "application/json"

    def parse(self, stream: IO[bytes], media_type: str | None = None, context: Mapping[str, Any] | None = None) -> Any:
        """Return the parsed value. Raises ParseError, RequestRefused."""
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        content = stream.read(most + 1)
        if len(content) > most:
            raise RequestRefused(413, "too_large", f"The body may have at most {most:,} bytes.")
        try:
            value = from_json(content, allow_inf_nan=False)
        except ValueError as error:
            if "recursion limit" in str(error):  # the reader's own, of 200 levels
                raise ParseError(TOO_DEEP) from error
            raise ParseError(f"The body is not valid JSON: {error}.") from error
        _check_depth(value)
        return value


class MultipartBody(MultiPartParser):  # type: ignore[misc]
    """A body of multipart/form-data: text fields and files."""

    def parse(self, stream: IO[bytes], media_type: str | None = None, context: Mapping[str, Any] | None = None) -> Any:
        """Return fields and files. Raises ParseError."""
        try:
            return super().parse(stream, media_type, context)
        except ParseError as error:
            raise ParseError(UNREADABLE) from error


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEPTH_MOST + 1:
            raise ParseError(TOO_DEEP)
        inner: list[Any] = []
        for each in level:
            inner += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        level = inner


def read(request: Request, shape: type[B]) -> B:
    """Return the request's body as a `shape`. Raises Invalid with each wrong field, and what the parser raises.

    A request without a body counts as an empty object. Of a form only the fields are read: see `uploaded_files`.
    """
    form = isinstance(request.data, QueryDict)
    try:
        return shape.model_validate(_form(request) if form else request.data, strict=not form)
    except ValidationError as error:
        raise Invalid(_errors_by_field(error)) from None


def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form, as text. Raises Invalid if one is sent twice, or if files and text are mixed up."""
    wrong = {name: ["Send it once."] for name, values in request.POST.lists() if len(values) > 1}
    wrong |= {name: ["There is no such field for files."] for name in request.FILES if name != FILES}
    if FILES in request.POST:
        wrong[FILES] = ["Send files here, not text."]
    if wrong:
        raise Invalid(wrong)
    return {name: str(value) for name, value in request.POST.items()}


def uploaded_files(request: Request) -> list[Upload]:
    """Return the files of a form; an empty list for any other body. Raises BadFile."""
    return read_uploads(request.FILES.getlist(FILES))


def _errors_by_field(error: ValidationError) -> dict[str, list[str]]:
    """Return the errors by location of the field, e.g. "digest" or "2.decision"; "" for the whole body."""
    fields: dict[str, list[str]] = {}
    for each in error.errors(include_url=False, include_input=False):
        words = _MESSAGES.get(each["type"]) or complaints.sentence(complaints.of_pydantic(each))
        fields.setdefault(".".join(map(str, each["loc"])), []).append(words)
    return fields


_MESSAGES = {
    "extra_forbidden": "There is no such field.",
    "missing": "This field is required.",
    "model_type": "Send a JSON object.",
}


def idempotency_key(request: Request) -> str:
    """Return the Idempotency-Key of the request; "" if there is none. Raises Invalid."""
    key: str | None = request.headers.get("Idempotency-Key")
    if key is None:
        return ""
    if not (key.isascii() and key.isprintable() and 1 <= len(key) <= KEY_MOST):
        raise Invalid({"Idempotency-Key": [f"Use 1 to {KEY_MOST} visible ASCII characters."]})
    if key.startswith(OWN):
        raise Invalid({"Idempotency-Key": [f"Keys that begin with {OWN} are the site's own. Choose another."]})
    return key


def _no_nul(text: str) -> str:
    if "\x00" in text:
        raise PydanticCustomError("nul", "The NUL character is not allowed")
    return text


def _as_time(value: object) -> datetime:
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise PydanticCustomError("time", "Give a date and a time with its zone, such as 2026-11-27T18:00:00Z")
    return time


Text = Annotated[str, AfterValidator(_no_nul)]
Anything = Annotated[Any, AfterValidator(lambda value: _no_nul(value) if isinstance(value, str) else value)]
Tier = Literal["normal", "high"]
Digest = Annotated[
    Annotated[str, Field(pattern="^([0-9a-f]{64})?$")] | None,
    Field(description="The digest of what was shown: `approval.digest`."),
]


if TYPE_CHECKING:
    PeopleMay = str
else:  # the decisions of the table, listed in the OpenAPI document
    PeopleMay = Literal[tuple(decision.value for decision in PEOPLE_MAY)]


class Body(BaseModel):
    """The base of all request bodies."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class NewConversation(Body):
    """A new conversation. `system_prompt`: the id or name of the system prompt of its agent, if you choose one."""

    title: Annotated[Text, Field(max_length=200)] = ""
    system_prompt: int | Text | None = None


class ChangedConversation(Body):
    """Changes to a conversation. Fields that are left out stay unchanged.

    `system_prompt`: the id or name of the system prompt of its agent from the next turn on. Null undoes the choice.
    """

    title: Annotated[Text, Field(max_length=TITLE_MOST)] | None = None
    archived: bool | None = None
    system_prompt: int | Text | None = None


class Erase(Body):
    """Why the conversation is deleted. The reason stays on record."""

    reason: Annotated[Text, Field(max_length=REASON_MOST)] = ""


class NewMessage(Body):
    """A message, and the tier of the model that should answer it.

    Staff may leave out the input: the system then starts the turn, in a queue. Staff may also hide the turn.
    """

    input: Text | None = None
    model: Tier = "normal"
    visible: bool = True


class NewPrompt(NewMessage):
    """A message, and the tier of the model that should answer it; or a policy, and its payload, in place of the input.

    Staff may leave out the input: the system then starts the turn, in a queue. Staff may also hide the turn.
    """

    policy: (
        Annotated[
            Text, Field(min_length=1, max_length=200, description="The name of a policy to run in place of the agent.")
        ]
        | None
    ) = None
    payload: Annotated[dict[str, Any], Field(description="The input of that policy.")] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.policy is None and self.payload is not None:
            raise PydanticCustomError("policy_missing", "A payload is that of a policy: name it, or send an input")
        if self.policy is not None and self.input is not None:
            raise PydanticCustomError("two_inputs", "A policy has a payload: send no input with it")
        return self


class NewPromptWithFiles(NewMessage):
    """The same as a form, with files. The input may be left out. The files are in the workspace when the turn runs."""

    files: list[bytes] = Field(default=[], max_length=FILES_MOST)


class NewUpload(Body):
    """One file, as a form."""

    file: bytes


class Stop(Body):
    """Why the turn is stopped."""

    reason: Annotated[Text, Field(max_length=1000)] = ""


class NoFields(Body):
    """An empty object, or no body."""


class GoOn(Body):
    """The model tier for the rest of the turn; if left out, the tier of the turn so far."""

    model: Tier | None = None


class GrantCondition(Body):
    """What must hold of one value of the input, such as `path` or `argv.1`. `any` takes no value."""

    field: Annotated[Text, Field(min_length=1, max_length=500)]
    operator: Literal["is", "in", "starts_with", "ends_with", "matches", "at_most", "at_least", "any"]
    value: Anything = None


class GivenGrant(Body):
    """Which calls of the tool run from now on without asking you: this exact call, or those that meet the conditions.

    Each value of the input needs a condition, and at least one of them must say more than `any`.
    """

    scope: Literal["exact", "fields"]
    conditions: Annotated[list[GrantCondition], Field(max_length=CONDITIONS_MOST)] = []
    this_conversation: bool = False
    until: Annotated[AwareDatetime, BeforeValidator(_as_time)] | None = None
    uses: Annotated[int, Field(ge=1, le=USES_MOST)] | None = None
    unattended: bool = False

    def remember(self) -> Remember:
        """Return it as decisions take it."""
        conditions = tuple(Condition(each.field, Operator(each.operator), each.value) for each in self.conditions)
        return Remember(Scope(self.scope), conditions, self.this_conversation, self.until, self.uses, self.unattended)


class Approve(Body):
    """Approve a call. `input` replaces the agent's input. `remember`: a grant that you give with it."""

    digest: Digest
    input: dict[str, Any] | None = None
    note: Annotated[Text, Field(max_length=2000)] = ""
    remember: GivenGrant | None = None


class Reject(Body):
    """Reject a call. The agent is told the reason."""

    digest: Digest
    reason: Annotated[Text, Field(max_length=2000)] = ""


class Answer(Body):
    """Answer a question of a policy: with one of its choices, with JSON that fits its form, or in words."""

    digest: Digest
    answer: Anything


class Decision(Body):
    """One of several decisions. `approval.ask` determines which ones are possible."""

    id: Annotated[int, Field(ge=1, lt=2**63)]
    digest: Digest
    decision: PeopleMay
    input: dict[str, Any] | None = None
    answer: Anything = None
    reason: Annotated[Text, Field(max_length=2000)] = ""


class Decisions(RootModel[Annotated[list[Decision], Field(min_length=1, max_length=TOGETHER_MOST)]]):
    """Several decisions. Their number is limited, because nobody reads a longer list."""
