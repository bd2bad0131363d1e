"""Plugins: before each round they may add tools and context, and they keep typed state with a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from pydantic import BaseModel

from agents.engine import actors
from agents.engine.interfaces.provider import ToolDefinition
from agents.engine.interfaces.services import Services
from agents.engine.ledger import JSON, Step, canonical
from agents.engine.tools.tool import Stateful, Tool, by_wire_name, wire_name
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
        self._states: dict[str, BaseModel] = {}
        self._tools_by_name: dict[str, Tool] | None = None

    def state(self, plugin: Plugin) -> BaseModel:
        """Return the plugin's state, as its `State`. Change it in place: changes are saved with the round's record."""
        if plugin.name not in self._states:
            self._states[plugin.name] = plugin.State.model_validate(self._view.state(plugin.name, self._began))
        return self._states[plugin.name]

    async def prepare_tools(self, plugins: Sequence[Plugin]) -> dict[str, Tool]:
        """Let every plugin prepare the round once; return its tools by name (S16). Raises RegistryError on a clash."""
        if self._tools_by_name is None:
            for plugin in plugins:
                await plugin.prepare(self)
            self._tools_by_name = {tool.name: tool for tool in by_wire_name(self.tools).values()}
        return self._tools_by_name

    def writes(self) -> list[Step]:
        """Return the `state` steps for what plugins changed while they prepared."""
        steps = []
        for name, state in self._states.items():
            value, before = state.model_dump(mode="json"), self._view.state(name, self._began)
            if value != type(state).model_validate(before).model_dump(mode="json"):
                steps.append(Step(actors.plugin(name), "state", {"plugin": name, "value": value}, path=self.path))
        return steps

    @property
    def system(self) -> str:
        """The system message: the base prompt followed by the context items, and nothing else (S19)."""
        return "\n\n".join(item for item in self.context if item)

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools as the model sees them, in a fixed order (S20)."""
        tools = sorted(by_wire_name(self.tools).items())
        return tuple(ToolDefinition(name, tool.description, tool.schema) for name, tool in tools)

    def snapshot(self) -> str:
        """Return the system text and tools as canonical JSON: what the model saw, stored once per distinct content."""
        tools: list[JSON] = [[t.name, t.description, t.schema] for t in self.definitions]
        return canonical({"system": self.system, "tools": tools})

    def tool_named(self, wire: str) -> str:
        """Return the name of the tool with this wire name; the wire name itself if there is no such tool."""
        return next((tool.name for tool in self.tools if wire_name(tool.name) == wire), wire)
