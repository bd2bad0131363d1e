"""The whole prompt: all that stands before the messages of a turn, made as the turn's own rounds make it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from agents import discovery
from agents.engine.interfaces.provider import ToolDefinition
from agents.engine.interfaces.services import PlainServices
from agents.engine.ledger import canonical
from agents.engine.limits import BYTES_A_TOKEN
from agents.engine.tools.plugin import Round
from agents.engine.view import View
from agents.models import SystemPromptVersion
from agents.providers.json.items import system_text
from conversations.prompts.limits import limits
from conversations.prompts.system_prompts import rendered

T = TypeVar("T")
Protocol = Literal["native", "json"]
"""How the tools are told: apart from the text, or in it, for a model that writes its calls as text."""
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
TOOLS = "tools"
"""The name of the part that tells of the tools."""


@dataclass(frozen=True)
class WholePrompt:
    """What a model is told before the messages of a turn that begins now.

    `text` is the system message. `tools` stand apart from it, in their order; in the protocol `json` they are in the
    text. `parts`: what each part takes in tokens, roughly: the base, what each plugin adds, by its name, and the tools.
    """

    version: SystemPromptVersion
    protocol: Protocol
    text: str
    tools: tuple[ToolDefinition, ...]
    parts: tuple[tuple[str, int], ...]

    @property
    def tokens(self) -> int:
        """What all of it takes."""
        return sum(tokens for _, tokens in self.parts)

    @property
    def definitions(self) -> str:
        """The tools that stand apart, for people to read."""
        told = [{"name": tool.name, "description": tool.description, "parameters": tool.schema} for tool in self.tools]
        return "\n\n".join(json.dumps(each, ensure_ascii=False, indent=2) for each in told)


def whole_prompt(version: SystemPromptVersion, user: User, protocol: Protocol) -> WholePrompt:
    """Return what the agent of this person would be told with this system prompt, in a new conversation.

    Raises whatever a plugin raises that cannot prepare outside a turn.
    """
    round = async_to_sync(_prepared)(rendered(version, user, timezone.now()), user)
    parts = [(name, _tokens(text)) for name, text in round.parts]
    if protocol == "native":
        told = "".join(canonical([tool.name, tool.description, tool.schema]) for tool in round.definitions)
        return WholePrompt(version, protocol, round.system, round.definitions, _with_tools(parts, told))
    text = system_text(round.system, round.definitions)
    return WholePrompt(version, protocol, text, (), _with_tools(parts, text[len(round.system) :]))


async def _prepared(base: str, user: User) -> Round:
    """Return the first round of a turn in which nothing was said yet."""
    found = discovery.installed()
    round = Round(
        1, "1", input=None, base=base, tools=found.offered, view=View(), services=_Services(user.pk), limits=limits()
    )
    await round.prepare([plugin() for plugin in found.plugins])
    return round


class _Services(PlainServices):
    """The services of a person, of whom nothing runs."""

    async def look_up(self, function: Callable[..., T], *args: Any) -> T:
        """Return what the function returns. It reads the database in the thread that asks for the whole prompt."""
        return await sync_to_async(function)(*args)


def _with_tools(parts: Sequence[tuple[str, int]], told: str) -> tuple[tuple[str, int], ...]:
    return (*parts, *([(TOOLS, _tokens(told))] if told else []))


def _tokens(text: str) -> int:
    return math.ceil(len(text.encode()) / BYTES_A_TOKEN)
