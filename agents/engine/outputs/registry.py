"""The registry of output kinds: a kind is one registration. The built-in ones stand at the end of this module."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agents.engine.errors import RegistryError, ToolError
from agents.engine.ledger import JSON, Step
from agents.engine.outputs import fold as rules
from agents.engine.outputs.kinds import (
    FileOutput,
    Output,
    ReasoningOutput,
    RetryOutput,
    TextOutput,
    ToolOutput,
    WidgetOutput,
    place_of,
)
from agents.engine.view import BOOKKEEPING

logger = logging.getLogger(__name__)

Fold = Callable[[Any, Step], Output | None]
Told = Callable[[Any], str | None]

RECORD = frozenset({*BOOKKEEPING, "action_result", "state"})
"""Step types that the record itself uses: none of them can be the name of a kind."""


@dataclass(frozen=True)
class Kind:
    """A kind of output as it was registered; `register_output` says what each field means."""

    name: str
    model: type[Output]
    fold: Fold | None
    told: Told | None
    template: str
    stays: frozenset[str]

    def after(self, output: Output | None, step: Step) -> Output | None:
        """What `step` makes of an output of this kind: the one it opens, or `output` changed; None for neither.

        Where the payload does not fit the model, because the kind has become another since, or where its rule fails,
        the step opens a bare Output.
        """
        if self.fold is not None and step.type != self.name:
            return self.fold(output, step)  # the record's own step: one that cannot be folded is for the check to find
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
        """Raise ValueError for what is no output of this kind, or would stand in the place of another output."""
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
    """Add a kind of output: steps of type `name` open it, and a tool emits it with `call.emit(name, data)`.

    model: its fields, a subclass of Output. fold: a function of the output so far and a step that returns the output
    after it: the output so far is the last one of this kind that the same call opened, or None; without it every step
    opens one, its payload the fields (`model.opened_by(step)`). told: a function of the output that returns what a
    model is told of it, at the end of the results of its batch; None or "" for nothing. It must always say the same of
    the same output. template: the Django template that shows it on the page, as `block.entry`; without it the page says
    that it cannot show it. stays: the names of the fields that are kept when a step is redacted.

    Raises RegistryError where the name is taken, naming both models, or one of the record's own, and for a name in
    `stays` that is no field.
    """
    if name in RECORD:
        raise RegistryError(f"{name!r} is a step of the record itself, not a kind of output")
    if other := _KINDS.get(name):
        raise RegistryError(
            f"the output kind {name!r} is registered twice: {_dotted_name(other.model)} and {_dotted_name(model)}"
        )
    kept = frozenset(stays)
    if unknown := kept - model.model_fields.keys():
        raise RegistryError(f"the output kind {name!r} has no field {sorted(unknown)[0]!r} that could stay")
    _KINDS[name] = Kind(name, model, fold, told, template, kept)


def unregister_output(name: str) -> None:
    """Undo `register_output`, for tests. What was recorded of the kind reads as a bare Output from then on."""
    del _KINDS[name]


def find_kind(name: str) -> Kind | None:
    """The kind of this name; None where nobody registered it."""
    return _KINDS.get(name)


def kind_of(output: Output) -> Kind | None:
    """The kind of this output; None for a bare one, whose kind is gone or has become another since."""
    kind = _KINDS.get(output.type)
    return kind if kind and isinstance(output, kind.model) else None


def check_kind(name: str, data: dict[str, JSON]) -> None:
    """Raise RegistryError for a kind that nobody registered, ToolError where its model refuses these fields."""
    kind = _KINDS.get(name)
    if kind is None:
        raise RegistryError(f"no output kind {name!r} is registered")
    try:
        kind.model.model_validate({**data, "type": name, "path": "", "position": 0})
    except ValidationError as error:
        raise ToolError(f"the output {name!r} does not take these fields: {error}", code="invalid_output") from error


def load_output(data: dict[str, JSON]) -> Output:
    """An output from its stored JSON.

    A bare Output where its kind is no longer registered, or has become another since.
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


# The built-in kinds. A text, a call and an answer that could not be read are messages of their own, by rules in
# `agent.projection`; reasoning goes back to the model as its provider's own items. Calls, reasoning and such answers
# are rows among a turn's activity on the page, and have no template.

register_output(
    "text", TextOutput, fold=rules.text, template="conversations/timeline/text.html", stays=["role_hint", "partial"]
)
register_output("tool", ToolOutput, fold=rules.call)
register_output("file", FileOutput, told=_file_told, template="conversations/timeline/file.html", stays=["file"])
register_output("widget", WidgetOutput, template="conversations/timeline/widget.html", stays=["widget"])
register_output("reasoning", ReasoningOutput)
register_output("retry", RetryOutput, fold=rules.retry)

BUILT_IN = frozenset(_KINDS)
"""The kinds that every site has, whatever apps it has."""
