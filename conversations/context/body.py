"""The body of a request for a chat completion: what the agent takes from it, what it ignores, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from agents.engine.foreign_schema import check_foreign_schema
from agents.engine.ledger import JSON, valid_text
from agents.engine.schema import valid_texts
from conversations.api.bodies import Tier
from conversations.api.errors import RequestRefused
from conversations.database.ids import row_id

TIERS: tuple[str, ...] = get_args(Tier)
"""The models."""
SAID_BY = ("user", "assistant")
"""The roles whose texts are taken for what was said. All others are ignored."""
QUOTED_MOST = 100_000
"""Characters of earlier texts that go in with a message; the oldest are left out."""
QUOTES_MOST = 1000
"""How many earlier texts do: what is put around each of them is sent to the model, too."""
WAIT_MOST = 300
"""Seconds that a request may wait for a person, in addition to the time that the turn itself takes."""
IGNORED_MOST, NAME = 50, re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""How many ignored fields are named, and what such a name looks like: it becomes a header."""
ANY_OBJECT: dict[str, JSON] = {"type": "object"}


class _Taken(BaseModel):
    """A part of a body. Clients send more than is known here, and it is ignored."""

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)


class Part(_Taken):
    """A part of a message. Only texts are taken."""

    type: str
    text: str | None = None


class Message(_Taken):
    """A message of the client's history."""

    role: str
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """All texts of the message; what else it has is named by its type."""
        if not isinstance(self.content, list):
            return self.content or ""
        return "\n".join(part.text or "" if part.type == "text" else f"[{part.type}]" for part in self.content)


class StreamOptions(_Taken):
    """Whether a last chunk has the usage."""

    include_usage: bool | None = None


class NamedSchema(_Taken):
    """The form of the answer."""

    name: str | None = None
    description: str | None = None
    schema_: Annotated[dict[str, Any], Field(alias="schema")]


class ResponseFormat(_Taken):
    """How the answer is to look."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: NamedSchema | None = None


class ChatCompletionRequest(_Taken):
    """A request in the format of OpenAI's chat completions. Of the messages, only the last one is said to the agent.

    `metadata.conversation`: the id of the conversation to go on in, unless the header X-Conversation has it.
    `metadata.prompt`: the id of a turn whose answer is wanted; then no message is read. `metadata.wait`: how many
    seconds to wait for a person who must decide, 0 to 300. Fields that are not listed here are ignored, and named in
    the header X-Ignored, but for those that ask for something that the agent does not do.
    """

    model: Annotated[str, WithJsonSchema({"type": "string", "enum": [*TIERS], "description": "A tier of the site."})]
    messages: Annotated[list[Message], Field(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None
    metadata: dict[str, Any] | None = None


TAKEN = frozenset(ChatCompletionRequest.model_fields)
METADATA = ("conversation", "prompt", "wait")
"""What metadata may say; more of it is ignored."""


def _nothing(value: JSON) -> bool:
    return value in (None, False, 0, [], {}, "none")


NO_TOOLS = "The agent has tools of its own, and cannot call those of a client. Leave {name} out."
REFUSED: dict[str, tuple[Callable[[JSON], bool], str]] = {
    "n": (lambda value: value in (None, 1), "The agent gives one answer: leave {name} out, or send 1."),
    "logprobs": (_nothing, "The agent's answers have no log probabilities: leave {name} out."),
    "top_logprobs": (_nothing, "The agent's answers have no log probabilities: leave {name} out."),
    "tools": (_nothing, NO_TOOLS),
    "tool_choice": (_nothing, NO_TOOLS),
    "functions": (_nothing, NO_TOOLS),
    "function_call": (_nothing, NO_TOOLS),
    "web_search_options": (_nothing, NO_TOOLS),
    "audio": (_nothing, "The agent answers in text alone: leave {name} out."),
    "modalities": (lambda value: value in (None, ["text"]), "The agent answers in text alone: leave {name} out."),
}
"""Fields that ask for what the agent does not do: which values ask for nothing, and why others are refused."""


@dataclass(frozen=True)
class Asked:
    """What a client asks for.

    `texts`: all that it says was said, as pairs of role and text; the last one is `said` now, unless it asks for the
    answer of an earlier `prompt`. `messages`: the messages as they came. `form`: of the answer, see
    `agents.engine.agent.turn.agent`. `ignored`: the names of fields that make no difference.
    """

    tier: str
    said: str
    texts: list[tuple[str, str]]
    messages: JSON
    stream: bool
    include_usage: bool
    form: dict[str, JSON] | None
    conversation: int | None
    prompt: int | None
    wait: float
    ignored: tuple[str, ...]

    @property
    def earlier(self) -> list[tuple[str, str]]:
        """What was said before, as the client says."""
        return self.texts[:-1]

    @property
    def answered(self) -> list[tuple[str, str]]:
        """The same up to the last answer: without what was said since, and was refused or not answered."""
        texts = self.earlier
        while texts and texts[-1][0] == "user":
            texts = texts[:-1]
        return texts


def quotes(texts: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return texts as they go in with a message: the last ones, QUOTES_MOST and QUOTED_MOST characters at most."""
    kept, room = list[list[str]](), QUOTED_MOST
    for role, text in reversed(texts):
        if len(text) > room or len(kept) == QUOTES_MOST:
            kept.append(["site", f"[{len(texts) - len(kept)} of the earlier messages left out.]"])
            break
        kept.append([role, text])
        room -= len(text)
    return kept[::-1]


def read_asked(body: ChatCompletionRequest, messages: JSON, conversation_header: str | None) -> Asked:
    """Return what a body asks for. `messages` is the field as it came. Raises RequestRefused."""
    extra = body.model_extra or {}
    for name, (harmless, why) in REFUSED.items():
        if not harmless(extra.get(name)):
            raise refused(f"unsupported_{name}", why.format(name=f"`{name}`"), name)
    metadata = body.metadata or {}
    prompt = _id(metadata.get("prompt"), "metadata.prompt")
    texts = [(message.role, text) for message in body.messages if message.role in SAID_BY and (text := message.text)]
    return Asked(
        tier=_tier(body.model),
        said=_said(body.messages) if prompt is None else "",
        texts=[(role, valid_text(text)) for role, text in texts],
        messages=messages,
        stream=bool(body.stream),
        include_usage=bool(body.stream_options and body.stream_options.include_usage),
        form=_form(body.response_format),
        conversation=_conversation(metadata.get("conversation"), conversation_header),
        prompt=prompt,
        wait=_wait(metadata.get("wait")),
        ignored=tuple(_ignored(body, extra, metadata)),
    )


def refused(code: str, message: str, param: str, status: int = 400) -> RequestRefused:
    """Return the refusal of a request for this parameter."""
    return RequestRefused(status, code, message, param=param)


def _tier(model: str) -> str:
    if model not in TIERS:
        why = f"There is no model {model[:100]!r} here. The models are the tiers of the site: {', '.join(TIERS)}."
        raise refused("model_not_found", why, "model", 404)
    return model


def _said(messages: list[Message]) -> str:
    """Return what the client's user says now. Raises RequestRefused if that is not the last message, or not text."""
    last = messages[-1]
    if last.role != "user":
        raise refused(
            "no_user_message", "The last message must be the user's: it is what the agent answers.", "messages"
        )
    if isinstance(last.content, list):
        for part in last.content:
            if part.type != "text":
                why = f"The agent reads text here, not {part.type!r}. Attach files on the site, or with its own API."
                raise refused("unsupported_content", why, "messages")
    if not last.text.strip():
        raise refused("empty_message", "The last message is empty. Write something first.", "messages")
    return last.text


def _form(wanted: ResponseFormat | None) -> dict[str, JSON] | None:
    """Return the form of the answer; None for words. Raises RequestRefused for a schema that cannot be used."""
    if wanted is None or wanted.type == "text":
        return None
    if wanted.type == "json_object":
        return {"schema": ANY_OBJECT}
    if wanted.json_schema is None:
        raise refused(
            "invalid_schema", "A format `json_schema` needs the schema: `json_schema.schema`.", "response_format"
        )
    named = wanted.json_schema
    try:
        check_foreign_schema(named.schema_)
    except ValueError as error:
        raise refused("invalid_schema", f"The answer cannot have this form: {error}.", "response_format") from error
    described = {"description": valid_text(named.description)[:1000]} if named.description else {}
    return {"schema": valid_texts(named.schema_), **described}


def _conversation(said: JSON, header: str | None) -> int | None:
    """Return the conversation to go on in. Raises RequestRefused if the header and the metadata name two."""
    in_body, in_header = _id(said, "metadata.conversation"), _id(header, "X-Conversation")
    if None not in (in_body, in_header) and in_body != in_header:
        raise refused("two_conversations", "X-Conversation and metadata name different conversations.", "metadata")
    return in_header if in_body is None else in_body


def _id(value: JSON, param: str) -> int | None:
    if value is None or value == "":
        return None
    found = None if isinstance(value, bool) else row_id(str(value))
    if found is None:
        raise refused("invalid_id", f"{param} must be an id, which is a whole number.", param)
    return found


def _wait(value: JSON) -> float:
    if value is None:
        return 0
    try:
        seconds = float("nan") if isinstance(value, bool) else float(str(value))
    except ValueError:
        seconds = float("nan")
    if not 0 <= seconds <= WAIT_MOST:
        raise refused("invalid_wait", f"metadata.wait must be a number of seconds, 0 to {WAIT_MOST}.", "metadata.wait")
    return seconds


def _ignored(body: ChatCompletionRequest, extra: dict[str, Any], metadata: dict[str, Any]) -> Iterator[str]:
    """Yield the names of what makes no difference, in their order, as far as they can be named."""
    names = [name for name, value in extra.items() if value is not None and name not in REFUSED]
    names += [f"metadata.{name}" for name in metadata if name not in METADATA]
    names += [f"messages.{role}" for role in dict.fromkeys(m.role for m in body.messages if m.role not in SAID_BY)]
    yield from [name for name in names if NAME.fullmatch(name)][:IGNORED_MOST]
