"""Messages: what a model is sent, independent of any provider."""

from __future__ import annotations

from dataclasses import dataclass

from agents.engine.ledger import JSON


@dataclass(frozen=True)
class UserMessage:
    """A message from a person. `notes` are added by the site, one for each attachment."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SiteMessage:
    """A line of the site about an earlier turn in which nobody spoke. Servers that need a user's message get none."""

    text: str


@dataclass(frozen=True)
class CallRequest:
    """A tool call in an assistant message: `call_id` pairs it with its result, `name` is the tool's wire name."""

    call_id: str
    name: str
    arguments: dict[str, JSON]


@dataclass(frozen=True)
class AssistantMessage:
    """One answer of the model: text, calls or both. `items` are the provider's opaque items of that answer."""

    text: str = ""
    calls: tuple[CallRequest, ...] = ()
    items: tuple[JSON, ...] = ()


@dataclass(frozen=True)
class ResultMessage:
    """The result of one call, as text. It follows the message that asked, together with the other results (I10).

    The site may add to it: `before`, a remark on the call, and `notes`, what the call made besides, such as files.
    """

    call_id: str
    name: str
    content: str
    before: str = ""
    notes: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All that is sent, in order. Where an API has parts, each is a part: a result that is JSON stays JSON."""
        return tuple(filter(None, [self.before, self.content, *self.notes])) or ("",)


Message = UserMessage | SiteMessage | AssistantMessage | ResultMessage
