"""Tools: functions that a model may call, with what their authors declare about them."""

from __future__ import annotations

import hashlib
import inspect
import re
import reprlib
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any, Generic, Literal, cast

from pydantic import BaseModel
from typing_extensions import TypeVar

from agents.engine import actors
from agents.engine.errors import NotKept, RegistryError
from agents.engine.grants.conditions import Condition
from agents.engine.grants.grant import Scope
from agents.engine.interfaces.provider import FINAL_ANSWER, ToolDefinition
from agents.engine.interfaces.services import Services
from agents.engine.ledger import JSON, Step, valid_text
from agents.engine.outputs.change import Change
from agents.engine.outputs.kinds import Output
from agents.engine.outputs.registry import check_kind, fields_of
from agents.engine.paths import HUMAN
from agents.engine.references import check_validators, parse_marked, problems_marked
from agents.engine.schema import check_annotation, in_one_line, plain_json, schema_of
from agents.engine.tools.category import Category
from agents.engine.tools.state import Nothing, Stateful

Input = TypeVar("Input", bound=BaseModel, default=Nothing)
State = TypeVar("State", default=None)

RESERVED = ("agent", HUMAN, "model", "show", "file", "value", "sleep", FINAL_ANSWER)
"""Names of the engine's own policies and tools, not available to others."""

NEEDED = 1000
"""The priority of tools that other texts tell a model to use."""

NAME = r"[a-z][a-z0-9]*([._-][a-z0-9]+)*"
"""The names of tools and of policies of apps: lower-case words joined by dots."""

TIME_LIMIT_MOST = 600.0
"""The longest time limit a tool may declare, in seconds."""


class Risk(StrEnum):
    """What a call can do to the world. A tool that declares no risk counts as DESTRUCTIVE (R18)."""

    READ = "read"
    WRITE = "write"
    EXFILTRATION = "exfiltration"
    DESTRUCTIVE = "destructive"
    HIGH = "high"


SANDBOXED = "Sandboxed: no network, sees only this conversation's folder."
"""The fact that says that the code of a HIGH call is sandboxed. It counts only whole: a model may begin another."""


NOT_SANDBOXED = "Not sandboxed"
"""How a fact begins which says that the code of a call is not sandboxed."""


@dataclass
class ToolCall(Generic[Input, State]):
    """What a tool's function is given: the validated input and everything it may use.

    `ToolCall[Order]` has the input `Order`, `ToolCall[Order, BasketState]` also the state of the declared plugin, and a
    plain `ToolCall` neither.

    `path` names the call and never changes. `key` is the same for every attempt, for services that take an idempotency
    key. `state` is the declared plugin's state, saved if the call changes it. `change` is what the tool said this call
    would change; if anybody was shown a change, it is that one. `reason` is what was asked in words when a person, or a
    grant, let it run; "" if nobody was asked.
    """

    tool: str
    input: Input
    user: int
    services: Services
    path: str
    key: str = ""
    attempt: int = 1
    state: State = cast(Any, None)  # noqa: RUF009 - it is None, and a tool with a plugin is given its state
    change: Change | None = None
    reason: str = ""
    emitted: list[Step] = field(default_factory=list)
    saving: list[tuple[str, bytes, str, str]] = field(default_factory=list)

    def widget(self, widget: str, data: dict[str, JSON], fallback: str) -> None:
        """Show people a widget; the model never sees it (S9)."""
        self.emit("widget", {"widget": widget, "data": data, "fallback": fallback})

    def file(self, name: str, content: bytes, *, media_type: str, summary: str) -> None:
        """Give people a file; the model reads only `summary` (S8). Raises NotKept for what is no file's content."""
        given: tuple[object, ...] = (content, name, media_type, summary)
        if [type(each) for each in given] != [bytes, str, str, str]:
            raise NotKept(f"The content of the file {name!r} must be bytes, and what is said about it text.")
        self.saving.append((name, content, media_type, summary))
        self._emit("file", {"file": 0, "name": valid_text(name), "summary": valid_text(summary)})

    def show(self, output: Output) -> None:
        """Show people an output of a registered kind, below the call's entry (S24). Raises NotKept as `emit` does."""
        self._emit(*fields_of(output))

    def emit(self, kind: str, data: dict[str, JSON]) -> None:
        """Add an output by the name of its kind and its fields, such as a piece that the kind's `fold` adds to another.

        Raises NotKept if it cannot be kept.
        """
        try:
            fields = plain_json(data, kind)
        except (TypeError, ValueError) as error:
            raise NotKept(f"The output {kind!r} is not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise NotKept(f"The output {kind!r} must be a dict of its fields, not a {type(data).__name__}.")
        check_kind(kind, fields)
        self._emit(kind, fields)

    def _emit(self, kind: str, fields: dict[str, JSON]) -> None:
        self.emitted.append(Step(actors.tool(self.tool), kind, fields))

    def draft(self, text: str) -> None:
        """Show streaming text, such as a running command's output. The result must contain all of it."""
        self.services.draft(self.path, text, self.attempt)


Requirement = bool | str | dict[str, Any] | Callable[[Any], Any] | None
"""What `required_approval` takes, or a plain or async function of the ToolCall that returns it."""


def required_approval(said: object) -> bool | str:
    """Return the reason why approval is required, True if it is for no reason given, False if it is not (S29).

    None and False mean no; True and a text mean yes; `{"required": bool, "reason": text}` says it in words, and may
    leave the reason out. Raises ValueError for anything else, because a slip must never let a call run.
    """
    match said:
        case None | bool():
            return bool(said)
        case str() if said.strip():
            return said
        case {"required": bool(required), **rest} if rest.keys() <= {"reason"}:
            reason = rest.get("reason", "")
            if isinstance(reason, str):
                return required and (reason.strip() or True)
    raise ValueError(f"{reprlib.repr(said)} is not True, False, a reason, or {{'required': ..., 'reason': ...}}")


Grantable = bool | Literal["exact"] | Callable[[Sequence[Condition]], str | None]
"""Whether people may grant calls of a tool: see `Declaration`."""


@dataclass(frozen=True, eq=False)
class Declaration:
    """What the author of a tool declares about it.

    risk: what it can do. approval: when a person must approve first; by default always, unless the risk is READ (R18).
    idempotent: whether it may run again after a crash; by default only READ tools may. category: its group, by which
    models are offered their tools in order; people never see it. priority: which tools an agent is offered first if
    there is no room for all, higher ones first. time_limit: seconds, at most 600. approval_hours: how long a gate stays
    open; None leaves either to the site's settings. four_eyes: whoever asked for the turn may not approve the call, not
    even a superuser. plugin: the plugin whose state it reads and changes; such a tool runs alone. offered: whether all
    rounds have it, or only those to which a plugin adds it.

    grantable: whether a person may grant that calls like one they approved run without asking; "exact": only calls with
    exactly the same input; a function of the conditions that a person gives: why they allow too much, or None. Never
    granted are calls that need four eyes, and HIGH ones that are not sandboxed. Of a tool with a `command`, which a
    shell takes apart, only exact calls are.

    title, says, justify: how a call is described to people: "Run a command"; "ran ls"; "Run: ls", the line that says
    what it is about to do. language: what the text that it answers with is written in, or the name of the file that it
    is from, from the input: people see it in colours. undoable: a sentence about whether a call can be undone, and how;
    whoever decides reads it, and it is no part of what is approved.

    facts, change: functions of the ToolCall, called when a person is asked and again when the call is about to start;
    it starts only if they return the same. facts: what is true of the call, e.g. "Not sandboxed". change: what it would
    change, shown as a diff; if it raises ToolError, the call ends with that error and nobody is asked. It is called
    first, and facts can read its result as `call.change`. Both must be quick: they run in the worker's event loop, and
    everything else in the worker waits for them.
    """

    name: str
    _: KW_ONLY
    risk: Risk = Risk.DESTRUCTIVE
    approval: Requirement = None
    idempotent: bool | None = None
    category: Category | None = None
    priority: int = 0
    time_limit: float | None = None
    approval_hours: float | None = None
    four_eyes: bool = False
    plugin: type[Stateful[Any]] | None = None
    offered: bool = True
    grantable: Grantable = True
    title: str = ""
    says: Callable[[Any], str] | None = None
    justify: Callable[[Any], str] | None = None
    language: Callable[[Any], str] | None = None
    undoable: str = ""
    facts: Callable[[Any], list[str]] | None = None
    change: Callable[[Any], Change | None] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Tool(Declaration):
    """A tool: its function, and what its author declares. `agents.engine.execution.effect.as_policy` makes it a policy.

    Here `approval`, `idempotent` and `title` are never left to a default.
    """

    function: Callable[[Any], Any]
    input: type[BaseModel]
    description: str

    @property
    def owner(self) -> str:
        """The module that defines it."""
        return self.function.__module__

    @property
    def preview(self) -> str:
        """The form in which people are shown its input: `diff` for a change, or ""; for a text `command` in it
        `command`, and for a list of texts `argv` `program`.
        """
        if self.change:
            return "diff"
        fields = self.schema.get("properties", {})
        command, argv = fields.get("command", {}), fields.get("argv", {})
        if command.get("type") == "string" and self.input.model_fields["command"].annotation is str:
            return "command"
        return "program" if argv.get("type") == "array" and argv.get("items", {}).get("type") == "string" else ""

    @property
    def always_asks(self) -> bool:
        """Whether a person must approve every call of it, whatever its input."""
        return self.approval is True or isinstance(self.approval, str)

    def grants(self, facts: Iterable[str]) -> Scope | None:
        """Return what a person may grant of a call with these facts: FIELDS includes EXACT. None: nothing."""
        facts = list(facts)
        bare = self.risk is Risk.HIGH and SANDBOXED not in facts
        if self.four_eyes or self.grantable is False or bare or any(map(_is_unboxed, facts)):
            return None
        return Scope.EXACT if self.grantable == "exact" or self.preview == "command" else Scope.FIELDS

    def refused_grant(self, conditions: Sequence[Condition]) -> str | None:
        """Return why these conditions allow too much, as the tool says, in a sentence; None if they do not.

        A tool that fails at it allows none.
        """
        try:
            why: object = self.grantable(conditions) if callable(self.grantable) else None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, a person is asked
            return f"What may be granted of this tool is unknown: {error}"
        return None if why is None else str(why) or "Conditions like these allow too much."

    @property
    def schema(self) -> dict[str, JSON]:
        """The JSON Schema of its input."""
        return schema_of(self.input)

    @cached_property
    def definition(self) -> ToolDefinition:
        """The tool as a model sees it."""
        category = self.category.name if self.category else ""
        return ToolDefinition(wire_name(self.name), self.description, self.schema, category)

    def problem(self, payload: dict[str, JSON]) -> str | None:
        """Return why this input is invalid; None if it is valid. It may refer to secrets of the run."""
        return in_one_line(self.problems(payload))

    def problems(self, payload: dict[str, JSON]) -> list[tuple[str, str]]:
        """Return each problem with this input as (place, reason), as `schema.problems` does."""
        return problems_marked(self.input, payload)

    def parse(self, payload: dict[str, JSON]) -> BaseModel:
        """Return this input as its model, with a marker for each secret of the run. Raises pydantic's errors."""
        return parse_marked(self.input, payload)


class tool(Declaration):  # noqa: N801 - it is used as a decorator
    """Decorator: make a tool of a function that takes one ToolCall, as declared.

    Raises RegistryError for an invalid name, approval, time limit or input.
    """

    def __call__(self, function: Callable[[Any], Any]) -> Tool:
        """Return the tool with this function."""
        name, reads = self.name, self.risk is Risk.READ
        if not isinstance(self.risk, Risk):
            raise RegistryError(f"{name}: risk must be one of {', '.join(map(str, Risk))}, not {self.risk!r}")
        if not re.fullmatch(NAME, name):
            raise RegistryError(f"a tool's name must be lower-case words joined by dots, not {name!r}")
        if name in RESERVED or wire_name(name) in RESERVED:
            raise RegistryError(f"{name!r} is reserved for a policy of the engine")
        if self.time_limit is not None and not 0 < self.time_limit <= TIME_LIMIT_MOST:
            raise RegistryError(f"{name}: the time limit must be between 0 and {TIME_LIMIT_MOST:.0f} seconds")
        if self.approval_hours is not None and self.approval_hours <= 0:
            raise RegistryError(f"{name}: approval_hours must be more than 0, not {self.approval_hours:g}")
        approval = not reads if self.approval is None else self.approval
        try:
            approval = approval if callable(approval) else required_approval(approval)
        except ValueError as error:
            raise RegistryError(f"{name}: approval: {error}") from None
        title = self.title or name
        decided = {
            "approval": approval,
            "idempotent": reads if self.idempotent is None else self.idempotent,
            "title": title,
        }
        description = inspect.getdoc(function) or title
        input = _input_of(function, name, self.plugin)
        return Tool(function=function, input=input, description=description, **vars(self) | decided)


def _input_of(function: Callable[[Any], Any], name: str, plugin: type[Stateful[Any]] | None) -> type[BaseModel]:
    """Return the input model M from the function's one parameter, `call: ToolCall[M]` or `ToolCall[M, State]`."""
    parameters = list(inspect.signature(function).parameters)
    if len(parameters) != 1:
        raise RegistryError(f"{name}: a tool must take one ToolCall, not {len(parameters)} parameters")
    try:
        hints = typing.get_type_hints(function)
        check_annotation(hints.get("return", Any))
    except (NameError, TypeError) as error:
        raise RegistryError(f"{name}: what it is said to return cannot be JSON: {error}") from error
    arguments = typing.get_args(hints.get(parameters[0]))
    if not arguments:
        return Nothing
    if not (isinstance(arguments[0], type) and issubclass(arguments[0], BaseModel)):
        raise RegistryError(f"{name}: ToolCall[...] needs a pydantic model")
    check_validators(arguments[0], name)
    state, kept = arguments[1] if len(arguments) > 1 else None, plugin.state_model if plugin else None
    if state not in (None, type(None), Any, kept):
        has = f"that of its plugin, {kept.__qualname__}" if kept else "none, as it declares no plugin"
        raise RegistryError(f"{name}: the state of its call is {has}, not {state!r}")
    return arguments[0]


def _is_unboxed(fact: str) -> bool:
    return fact.startswith(NOT_SANDBOXED)


def is_tool_name(name: str) -> bool:
    """Whether a tool may have this name."""
    return re.fullmatch(NAME, name) is not None and not {name, wire_name(name)} & set(RESERVED)


@lru_cache(maxsize=4096)
def wire_name(name: str) -> str:
    """Return the name used with models, whose APIs allow only [A-Za-z0-9_-]{1,64} (R26)."""
    wire = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return wire if len(wire) <= 64 else f"{wire[:55]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def by_category(tools: Iterable[Tool]) -> list[Tool]:
    """Return the tools in their fixed order: by category, then by name; those of no category come last (S62)."""

    def place(tool: Tool) -> tuple[bool, int, str, str]:
        group = tool.category
        return group is None, group.order if group else 0, group.name if group else "", tool.name

    return sorted(tools, key=place)


def by_wire_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Return the tools by wire name, in their order.

    Raises RegistryError naming both modules if two tools share a name or a wire name.
    """
    found: dict[str, Tool] = {}
    for each in tools:
        other = found.setdefault(wire_name(each.name), each)
        if other is not each:  # the same tool, imported into another module, is not a second one
            named = " and ".join(f"{one.name!r} in {one.owner}" for one in (other, each))
            raise RegistryError(f"two tools share the name {wire_name(each.name)!r}, as a model sees it: {named}")
    return found
