"""Plugins: before each round they may add tools and context, and they keep typed state with a conversation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pydantic import BaseModel

from agents.engine import actors
from agents.engine.interfaces.provider import ToolDefinition
from agents.engine.interfaces.services import Services
from agents.engine.ledger import JSON, Step, canonical
from agents.engine.tools.tool import Stateful, Tool, by_wire_name, read_state, state_steps
from agents.engine.view import View


class Plugin(Stateful):
    """The base class of plugins: give a subclass a `name`, and add to the round in `prepare()`.

    One instance serves every turn, so keep nothing on it. What it keeps with a conversation is its `State`, a pydantic
    model in which every field has a default.
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
        self.context: list[str] = [base]
        call = view.call(path)
        self._began = call.id if call else None
        self._view = view
        self._states: dict[type[Plugin], BaseModel] = {}
        self._offered: dict[str, Tool] = {}

    def state(self, plugin: Plugin) -> BaseModel:
        """Return the plugin's state, as its `State`. Change it in place: changes are saved with the round's record."""
        kept = type(plugin)
        if kept not in self._states:
            self._states[kept] = read_state(kept, self._view, self._began)
        return self._states[kept]

    async def prepare(self, plugins: Iterable[Plugin]) -> None:
        """Let every plugin prepare the round (S16). Raises RegistryError if two of its tools share a name."""
        for plugin in plugins:
            await plugin.prepare(self)
        self._offered = by_wire_name(self.tools)

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
        """Return the system text and tools as canonical JSON: what the model saw, stored once per distinct content."""
        tools: list[JSON] = [[t.name, t.description, t.schema] for t in self.definitions]
        return canonical({"system": self.system, "tools": tools})

    def tool_named(self, wire: str) -> str:
        """Return the name of the tool with this wire name; the wire name itself if there is no such tool."""
        return self._offered[wire].name if wire in self._offered else wire
