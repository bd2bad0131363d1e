"""Plugins: before each round they may add tools and context, and they keep typed state with a conversation."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from itertools import groupby
from typing import Any, ClassVar, cast

from pydantic import BaseModel

from agents.engine import actors
from agents.engine.errors import RegistryError, ToolError
from agents.engine.interfaces.provider import ToolDefinition
from agents.engine.interfaces.services import Services
from agents.engine.ledger import Step
from agents.engine.limits import Limits
from agents.engine.outputs.kinds import Output
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.snapshot import snapshot_text
from agents.engine.tools.state import Kept, Stateful, read_state, state_steps
from agents.engine.tools.tool import Tool, by_wire_name
from agents.engine.view import View

logger = logging.getLogger(__name__)

BASE = "base"
"""The name of the first part of a system message: what there is before plugins add to it."""
BETWEEN = "\n\n"
"""What separates the texts of a system message."""


class Plugin(Stateful[Kept]):
    """The base class of plugins: give a subclass a `name`, and add to the round in `prepare()`.

    One instance serves every turn, so keep nothing on it. What `class Basket(Plugin[BasketState])` keeps with a
    conversation is a `BasketState`, a pydantic model in which every field has a default.
    """

    order: ClassVar[int] = 100
    """Plugins prepare in ascending order, then by name."""

    async def prepare(self, round: Round) -> None:
        """Add to `round.tools` and `round.context`. Called before every round, including the first after a pause."""


class Round:
    """What `Plugin.prepare()` is given. Append tools to `tools` and texts to `context`; both start over each round.

    `number` counts from 1; `input` is what the person said, or what the trigger says that started the turn (None:
    neither); `path` is the path of the round's call.
    `declared` are the tools with which every round of the agent starts, `limits` those of the turn. `only`, if it is
    not None, has the names of all tools that the agent's caller allows it: the others are left out in the end.
    `final` is the tool for an answer that has a form, if it has: it comes last, and no plugin has a say in it.
    `installed` finds a tool of the site by its name, also one that this round is not offered.

    A round can be prepared outside a turn, to see what a model would be told: the first one, of an empty View.
    """

    def __init__(
        self,
        number: int,
        path: str,
        *,
        input: str | None,
        base: str,
        tools: Iterable[Tool],
        view: View,
        services: Services,
        limits: Limits | None = None,
        only: frozenset[str] | None = None,
        final: Tool | None = None,
        installed: Callable[[str], Tool | None] = lambda name: None,
    ) -> None:
        self.number, self.path, self.input, self.services = number, path, input, services
        self.limits, self.only, self.installed, self.final = limits or Limits(), only, installed, final
        self.tools: list[Tool] = list(tools)
        self.declared = tuple(self.tools)
        self.context: list[str] = [base]
        self._parts: list[tuple[str, str]] = []
        call = view.call(path)
        self._began = call.id if call else None
        self._view = view
        self._states: dict[type[Plugin[Any]], BaseModel] = {}
        self._plugins: dict[str, type[Plugin[Any]]] = {}
        self._offered: dict[str, Tool] = {}

    def state(self, plugin: Plugin[Kept]) -> Kept:
        """Return the plugin's own state. Change it in place: changes are saved with the round's record."""
        kept = type(plugin)
        if kept not in self._states:
            self._states[kept] = read_state(kept, self._view, self._began)
        return cast(Kept, self._states[kept])

    def state_when_answered(self, plugin: Plugin[Kept]) -> Kept | None:
        """Return a copy of the plugin's state as this round's answer left it; None if the round has no answer yet.

        It has one when it is prepared again, for the calls that its answer asked for.
        """
        result = self._view.result(self.path)
        return cast(Kept, read_state(type(plugin), self._view, result.id)) if result else None

    @property
    def open_calls(self) -> frozenset[str]:
        """The names of the tools that this round's answer asked for, of calls without a result."""
        asked = self._view.emitted(self.path)
        return frozenset(call.payload["policy"] for call in asked if not self._view.result(call.path))

    def state_of(self, name: str) -> Any:
        """Return a copy of the state of the plugin with this name, to read: changing the copy changes nothing.

        It has what the plugins that prepared before this one have changed. Raises RegistryError if there is no such
        plugin.
        """
        if name not in self._plugins:
            there_are = ", ".join(sorted(self._plugins)) or "none"
            raise RegistryError(f"there is no plugin {name!r}; there are: {there_are}")
        plugin = self._plugins[name]
        changed = self._states.get(plugin)
        return changed.model_copy(deep=True) if changed else read_state(plugin, self._view, self._began)

    @cached_property
    def outputs(self) -> Sequence[Output]:
        """What has happened in this turn before the round, in reading order: texts, calls with their results, files.

        A round that is prepared again, after a pause or a crash, sees the same as the first time.
        """
        before = (step for step in self._view.steps if self._began is None or step.id < self._began)
        return tuple(Outputs(before).in_order())

    async def prepare(self, plugins: Iterable[Plugin[Any]]) -> None:
        """Let every plugin prepare the round (S16).

        Raises RegistryError if two of its tools share a name, and ToolError for a name in `only` that no tool has.
        """
        plugins = list(plugins)
        self._plugins = {plugin.name: type(plugin) for plugin in plugins}
        self._parts = [(BASE, text) for text in self.context]
        for plugin in plugins:
            before = Counter(map(id, self.tools))
            await plugin.prepare(self)
            after = Counter(map(id, self.tools))
            for tool in self.declared:
                if after[id(tool)] > before[id(tool)] > 0:
                    _warn_of_push(plugin.name, tool.name)
            self._parts = _by_author(self._parts, self.context, plugin.name)
        offered = self.tools if self.only is None else [tool for tool in self.tools if tool.name in self.only]
        if missing := (self.only or frozenset()) - {tool.name for tool in offered}:
            raise ToolError(f"There is no tool {min(missing)!r} here.", "unknown_tool")
        self._offered = by_wire_name([*offered, *([self.final] if self.final else [])])

    def writes(self) -> list[Step]:
        """Return the steps for what plugins changed while they prepared: `state`, or a note if it cannot be kept."""
        steps: list[Step] = []
        for plugin, state in self._states.items():
            try:
                steps += state_steps(plugin, state, actors.plugin(plugin.name), self._view, self._began)
            except Exception as error:  # noqa: BLE001 - whatever its validators raise: the conversation must go on
                why = f"The plugin {plugin.name!r} left a state that it could not read again: it was not kept. {error}"
                steps.append(Step("runtime", "note", {"code": "state_refused", "message": why}))
        return steps

    @property
    def tools_by_name(self) -> dict[str, Tool]:
        """The tools by name, once the round is prepared."""
        return {tool.name: tool for tool in self._offered.values()}

    @property
    def system(self) -> str:
        """The system message: the base prompt followed by the context items, and nothing else (S19)."""
        return BETWEEN.join(filter(None, self.context))

    @property
    def parts(self) -> list[tuple[str, str]]:
        """The system message in parts, once the round is prepared: the base, then what each plugin added, by its name.

        Joined as they are, they are the system message.
        """
        said = ((name, text) for name, text in self._parts if text)
        parts = groupby(said, key=lambda part: part[0])
        return [(name, BETWEEN.join(text for _, text in texts)) for name, texts in parts]

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools as the model sees them, in their order (S20)."""
        return tuple(tool.definition for tool in self._offered.values())

    def snapshot(self) -> str:
        """Return the system text and tools as stored text: what the model saw, and what is declared of the tools."""
        return snapshot_text(self.system, self._offered.values())

    def tool_named(self, wire: str) -> str:
        """Return the name of the tool with this wire name; the wire name itself if there is no such tool."""
        return self._offered[wire].name if wire in self._offered else wire


def _by_author(before: Sequence[tuple[str, str]], context: Iterable[str], plugin: str) -> list[tuple[str, str]]:
    """Return the context's texts, each with the name of who wrote it: `plugin` wrote those that were not there."""
    left, parts = list(before), []
    for text in context:
        part = next((part for part in left if part[1] == text), None)
        if part:
            left.remove(part)
        parts.append(part or (plugin, text))
    return parts


@cache  # once in a process: a round is prepared again and again
def _warn_of_push(plugin: str, tool: str) -> None:
    why = "the plugin %r adds the tool %r, which every round is offered anyway: declare it with offered=False"
    logger.warning(why, plugin, tool)
