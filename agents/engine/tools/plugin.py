"""Plugins: before each round they may add tools and context, and they keep typed state with a conversation."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from typing import Any, ClassVar, cast

from pydantic import BaseModel

from agents.engine import actors
from agents.engine.errors import RegistryError, ToolError
from agents.engine.interfaces.provider import ToolDefinition
from agents.engine.interfaces.services import Services
from agents.engine.ledger import Step
from agents.engine.outputs.kinds import Output
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.snapshot import snapshot_text
from agents.engine.tools.state import Kept, Stateful, read_state, state_steps
from agents.engine.tools.tool import Tool, by_wire_name
from agents.engine.view import View

logger = logging.getLogger(__name__)


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

    `number` counts from 1; `input` is what the person said (None: nothing); `path` is the path of the round's call.
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
    ) -> None:
        self.number, self.path, self.input, self.services = number, path, input, services
        self.tools: list[Tool] = list(tools)
        self._anyway = tuple(self.tools)
        self.context: list[str] = [base]
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

    async def prepare(self, plugins: Iterable[Plugin[Any]], only: frozenset[str] | None = None) -> None:
        """Let every plugin prepare the round (S16). `only`: the names of all tools that may be offered, or None.

        Raises RegistryError if two of its tools share a name, and ToolError for a name in `only` that no tool has.
        """
        plugins = list(plugins)
        self._plugins = {plugin.name: type(plugin) for plugin in plugins}
        for plugin in plugins:
            before = list(self.tools)
            await plugin.prepare(self)
            for tool in self._anyway:
                if self.tools.count(tool) > before.count(tool) > 0:
                    _warn_of_push(plugin.name, tool.name)
        offered = self.tools if only is None else [tool for tool in self.tools if tool.name in only]
        if missing := (only or frozenset()) - {tool.name for tool in offered}:
            raise ToolError(f"There is no tool {min(missing)!r} here.", "unknown_tool")
        self._offered = by_wire_name(offered)

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
        return "\n\n".join(item for item in self.context if item)

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools as the model sees them, in a fixed order (S20)."""
        tools = sorted(self._offered.items())
        return tuple(ToolDefinition(name, tool.description, tool.schema) for name, tool in tools)

    def snapshot(self) -> str:
        """Return the system text and tools as stored text: what the model saw, and what is declared of the tools."""
        return snapshot_text(self.system, self._offered.values())

    def tool_named(self, wire: str) -> str:
        """Return the name of the tool with this wire name; the wire name itself if there is no such tool."""
        return self._offered[wire].name if wire in self._offered else wire


@cache  # once in a process: a round is prepared again and again
def _warn_of_push(plugin: str, tool: str) -> None:
    why = "the plugin %r adds the tool %r, which every round is offered anyway: declare it with offered=False"
    logger.warning(why, plugin, tool)
