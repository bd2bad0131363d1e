"""What `/context` answers: OpenAI's shapes, and beside them what the format has no place for."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field

from agents.models import SystemPrompt
from conversations.display.shapes.base import OptionalTime, Shape, Text
from conversations.display.shapes.events import Encoded
from conversations.prompts.whole_prompt import WholePrompt
from conversations.usage.totals import Spent


class InputDetails(Shape):
    """Of the input."""

    cached_tokens: int


class OutputDetails(Shape):
    """Of the output."""

    reasoning_tokens: int


class TokenUsage(Shape):
    """The tokens of all rounds of the turn so far."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: InputDetails
    completion_tokens_details: OutputDetails

    @classmethod
    def of(cls, spent: Spent) -> Self:
        """Return these sums."""
        return cls(
            prompt_tokens=spent.input_tokens,
            completion_tokens=spent.output_tokens,
            total_tokens=spent.total_tokens,
            prompt_tokens_details=InputDetails(cached_tokens=spent.cached_tokens),
            completion_tokens_details=OutputDetails(reasoning_tokens=spent.reasoning_tokens),
        )


class ApprovalItem(Shape):
    """A call, or a question, that waits for a person, who decides it at `url`."""

    id: Annotated[int, Field(description="Its id in the API: `/api/approvals/<id>/`.")]
    url: str
    tool: str
    title: Text
    reason: Text
    risk: Text
    expires_at: OptionalTime


class ContextApproval(Shape):
    """What the turn waits for. Ask for the answer with `metadata.prompt`."""

    prompt: int
    state: Literal["waiting_for_approval"]
    items: list[ApprovalItem]


class Place(Shape):
    """The conversation and the turn, by their ids."""

    conversation: str
    prompt: str


class AnswerMessage(Shape):
    """The answer."""

    role: Literal["assistant"]
    content: str
    refusal: None


class Choice(Shape):
    """The only one."""

    index: Literal[0]
    message: AnswerMessage
    logprobs: None
    finish_reason: Literal["stop", "length", "content_filter"]


class ChatCompletion(Shape):
    """An answer of the agent. `model` is the tier. `approval`: what it waits for; null if for nobody."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: TokenUsage
    metadata: Place
    approval: ContextApproval | None


class ChatCompletionChunk(Shape):
    """A piece of an answer. The last one has `finish_reason` and, while it waits for a person, `approval`."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[dict[str, Any]]
    usage: Annotated[TokenUsage | None, Field(exclude_if=lambda usage: usage is None)] = None
    metadata: Place
    approval: Annotated[ContextApproval | None, Field(exclude_if=lambda approval: approval is None)] = None


class TierModel(Shape):
    """A tier of the site's models."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class TierList(Shape):
    """The tiers."""

    object: Literal["list"]
    data: list[TierModel]


class PromptTool(Shape):
    """A tool as a model is told of it, and the category that it stands in."""

    name: str
    description: str
    parameters: dict[str, Any]
    category: Text


class PromptPart(Shape):
    """A part of the prompt: `base`, what a plugin adds, by its name, or `tools`. Tokens are counted roughly."""

    name: str
    tokens: int


class EnhancedPrompt(Shape):
    """All that a model is told before the messages. In the protocol `json`, the tools are in the text."""

    id: int
    name: str
    version: int
    protocol: Literal["native", "json"]
    text: str
    tools: list[PromptTool]
    parts: list[PromptPart]

    @classmethod
    def of(cls, prompt: SystemPrompt, whole: WholePrompt) -> Self:
        """Return the whole prompt made with this system prompt."""
        return cls(
            id=prompt.pk,
            name=prompt.name,
            version=whole.version.number,
            protocol=whole.protocol,
            text=whole.text,
            tools=[
                PromptTool(name=each.name, description=each.description, parameters=each.schema, category=each.category)
                for each in whole.tools
            ],
            parts=[PromptPart(name=name, tokens=tokens) for name, tokens in whole.parts],
        )


class OpenAIErrorBody(Shape):
    """What went wrong: `code` is for programs and never changes, `message` says what to do."""

    message: str
    type: str
    param: Text
    code: str


class OpenAIError(Shape):
    """An error, as OpenAI's clients read it. `approval`: of a turn that waits, when another message comes."""

    error: OpenAIErrorBody
    approval: Annotated[ContextApproval | None, Field(exclude_if=lambda approval: approval is None)] = None


class ChunkEvent(Shape):
    """An event of a streamed answer. The data of the last one is an error, or `[DONE]`."""

    event: str = "message"
    data: Annotated[ChatCompletionChunk | OpenAIError, Encoded]
