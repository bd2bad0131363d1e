"""The registry of output kinds: each kind is one registration. The built-in ones are at the end of this module."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agents.engine.errors import NotKept, RegistryError
from agents.engine.ledger import JSON, Step
from agents.engine.outputs import fold as rules
from agents.engine.outputs.kinds import (
    FileOutput,
    Output,
    ProgressOutput,
    ReasoningOutput,
    ResultOutput,
    RetryOutput,
    TextOutput,
    ToolOutput,
    WidgetOutput,
    place_of,
)
from agents.engine.schema import check_annotation
from agents.engine.view import BOOKKEEPING

logger = logging.getLogger(__name__)

Fold = Callable[[Any, Step], Output | None]
Told = Callable[[Any], str | None]

RECORD = frozenset({*BOOKKEEPING, "action_result", "state"}) - {"progress"}
"""Step types that the ledger itself uses. None of them can be the name of a kind."""


@dataclass(frozen=True)
class Kind:
    """A registered kind of output; `register_output` explains its fields."""

    name: str
    model: type[Output]
    fold: Fold | None
    told: Told | None
    template: str
    stays: frozenset[str]

    def after(self, output: Output | None, step: Step) -> Output | None:
        """Return the output that `step` opens, or `output` as changed by it; None for neither.

        If the payload does not fit the model, because the kind has changed since, or if its fold fails, the step opens
        a bare Output.
        """
        if self.fold is not None and step.type != self.name:
            return self.fold(output, step)  # a step of the ledger itself: verification finds one that cannot be folded
        try:
            after = self.fold(output, step) if self.fold else self.model.opened_by(step)
            self._check(after, output, step)
        except ValidationError:
            return Output(type=self.name, **place_of(step))
        except Exception:
            logger.warning("the fold of the output kind %r failed at step %d", self.name, step.id, exc_info=True)
            return Output(type=self.name, **place_of(step))
        return after

    def _check(self, after: Output | None, output: Output | None, step: Step) -> None:
        """Raise ValueError for something that is not an output of this kind, or would replace a different output."""
        if after is None:
            return
        places = {(step.path, step.id)} | ({(output.path, output.position)} if output else set())
        if not isinstance(after, self.model) or after.type != self.name or (after.path, after.position) not in places:
            raise ValueError(f"{after!r} is neither a {self.name!r} that the step opens nor the one before it")


_KINDS: dict[str, Kind] = {}


def register_output(
    name: str,
    model: type[Output],
    *,
    fold: Fold | None = None,
    told: Told | None = None,
    template: str = "",
    stays: Iterable[str] = (),
) -> None:
    """Add a kind of output: steps of type `name` open it, and a tool shows one with `call.show(model(...))`.

    model: its fields, a subclass of Output. fold: a function of the output so far and a step that returns the output
    after the step; the output so far is the last one of this kind that the same call opened, or None. Without a fold
    every step opens a new output with the payload as its fields (`model.opened_by(step)`). told: a function of the
    output that returns what the model is told about it, at the end of the results of its batch; None or "" for nothing.
    It must always return the same text for the same output. template: the Django template that shows it on the page, as
    `block.entry`; without one the page says that it cannot show it. stays: the names of the fields that survive when a
    step is redacted.

    Raises RegistryError if the name is taken (naming both models) or is one of the ledger's own step types, for a model
    that is no Output, cannot be stored as JSON or has a kind already, and for a name in `stays` that is not a field.
    """
    given: object = model
    if not (isinstance(given, type) and issubclass(given, Output)):
        raise RegistryError(f"the output kind {name!r} needs a subclass of Output, not {model!r}")
    try:
        check_annotation(model)
    except TypeError as error:
        raise RegistryError(f"the output kind {name!r} cannot be stored as JSON: {error}") from error
    if name in RECORD:
        raise RegistryError(f"{name!r} is a step type of the ledger itself, not a kind of output")
    if other := _KINDS.get(name):
        raise RegistryError(
            f"the output kind {name!r} is registered twice: {_dotted_name(other.model)} and {_dotted_name(model)}"
        )
    if other := _kind_with(model):
        raise RegistryError(f"{_dotted_name(model)} is the model of two kinds of output: {other.name!r} and {name!r}")
    kept = frozenset(stays)
    if unknown := kept - model.model_fields.keys():
        raise RegistryError(f"the output kind {name!r} has no field {sorted(unknown)[0]!r} that could stay")
    _KINDS[name] = Kind(name, model, fold, told, template, kept)


def unregister_output(name: str) -> None:
    """Undo `register_output`, for tests. Recorded outputs of the kind are read as bare Outputs from then on."""
    del _KINDS[name]


def find_kind(name: str) -> Kind | None:
    """Return the kind with this name; None if it is not registered."""
    return _KINDS.get(name)


def _kind_with(model: type[Output]) -> Kind | None:
    return next((kind for kind in _KINDS.values() if kind.model is model), None)


def kind_of(output: Output) -> Kind | None:
    """Return the kind of this output; None for a bare one, whose kind is gone or has changed since."""
    kind = _KINDS.get(output.type)
    return kind if kind and isinstance(output, kind.model) else None


def check_kind(name: str, data: dict[str, JSON]) -> None:
    """Raise NotKept for a kind that tools do not emit, and if its model rejects these fields, or stored ones."""
    kind = _KINDS.get(name)
    if kind is None:
        raise NotKept(f"No output kind {name!r} is registered.")
    if name in _NOT_EMITTED:
        raise NotKept(f"Outputs of the kind {name!r} are not emitted{_NOT_EMITTED[name]}.")
    try:
        stored = _stored(kind, {**data, "type": name, "path": "", "position": 0})
        again = _stored(kind, stored)
    except Exception as error:
        raise NotKept(f"The output {name!r} does not take these fields: {error}") from error
    if again != stored:
        raise NotKept(f"The output {name!r} would have other fields when it is read again.")


def kind_name(output: Output) -> str:
    """Return the name of the kind that this is an output of; "" if it is of no registered kind."""
    kind = _kind_with(type(output))
    return kind.name if kind else ""


def fields_of(output: Output) -> tuple[str, dict[str, JSON]]:
    """Return the kind of an output that is to be shown, and its fields. Raises NotKept if it cannot be kept."""
    if not (kind := kind_name(output)):
        named = type(output).__qualname__
        raise NotKept(f"No output kind is registered for {named}: register_output('a_name', {named}).")
    try:
        fields = output.model_dump(mode="json", exclude=set(Output.model_fields))
    except (TypeError, ValueError) as error:
        raise NotKept(f"The output {kind!r} is not JSON: {error}") from error
    check_kind(kind, fields)
    return kind, fields


def _stored(kind: Kind, fields: dict[str, JSON]) -> dict[str, JSON]:
    """Return an output of this kind with these fields as it is stored. Raises whatever its model's validators raise."""
    return kind.model.model_validate(fields).model_dump(mode="json")


def load_output(data: dict[str, JSON]) -> Output:
    """Return an output from its stored JSON.

    It is a bare Output if its kind is no longer registered, or has changed since.
    """
    kind = _KINDS.get(data["type"])
    try:
        return (kind.model if kind else Output).model_validate(data)
    except ValidationError:
        return Output.model_validate(data)


def _dotted_name(model: type[Output]) -> str:
    return f"{model.__module__}.{model.__qualname__}"


def _file_told(file: FileOutput) -> str:
    return f"[file {file.name}] {file.summary}"


# The built-in kinds. Texts, calls, results and unreadable answers become messages of their own, by rules in
# `agent.projection`; reasoning goes back to the model as its provider's own items. Calls, reasoning and unreadable
# answers are rows in a turn's activity on the page, and have no template.

register_output(
    "text", TextOutput, fold=rules.text, template="conversations/timeline/text.html", stays=["role_hint", "partial"]
)
register_output("tool", ToolOutput, fold=rules.call)
register_output("file", FileOutput, told=_file_told, template="conversations/timeline/file.html", stays=["file"])
register_output("widget", WidgetOutput, template="conversations/timeline/widget.html", stays=["widget"])
register_output("reasoning", ReasoningOutput)
register_output("retry", RetryOutput, fold=rules.retry)
register_output(
    "progress",
    ProgressOutput,
    fold=rules.progress,
    template="conversations/timeline/progress.html",
    stays=["done", "total", "said"],
)
register_output("result", ResultOutput, fold=rules.result, template="conversations/timeline/result.html")

_NOT_EMITTED = {
    **dict.fromkeys(("tool", "retry", "reasoning", "result"), ""),
    "file": ", but given with call.file(...)",
    "progress": ", but said with ctx.progress(...)",
}
"""The kinds that tools do not emit, and what they do instead."""

BUILT_IN = frozenset(_KINDS)
"""The kinds that every site has, whatever its apps."""
