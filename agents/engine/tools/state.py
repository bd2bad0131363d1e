"""State that plugins keep with a conversation: typed, read from the ledger, recorded as a step when it changes."""

from __future__ import annotations

import typing
from typing import Any, ClassVar, Generic

from pydantic import BaseModel
from typing_extensions import TypeVar

from agents.engine.errors import RegistryError
from agents.engine.ledger import Step
from agents.engine.schema import jsonable, plain_json
from agents.engine.view import View


class Nothing(BaseModel):
    """A model without fields: the input of a tool that takes none, the state of a plugin that keeps none."""


Kept = TypeVar("Kept", bound=BaseModel, default=Nothing)
"""The model of a plugin's state."""


class Stateful(Generic[Kept]):
    """The part of a plugin that keeps typed state with a conversation. A tool that declares it may change its state.

    The state's model is the one in brackets, `class Basket(Plugin[BasketState])`; every field of it needs a default.
    """

    name: ClassVar[str] = ""
    state_model: ClassVar[type[BaseModel]] = Nothing
    _kept: ClassVar[Any] = Kept  # type: ignore[misc] # what stands for the model in a generic class

    def __init_subclass__(cls, **more: Any) -> None:
        """Find the state's model. Raises RegistryError for a state that is no pydantic model."""
        super().__init_subclass__(**more)
        for base in cls.__dict__.get("__orig_bases__", ()):
            of = typing.get_origin(base)
            if not (isinstance(of, type) and issubclass(of, Stateful)):
                continue
            given = dict(zip(getattr(of, "__parameters__", ()), typing.get_args(base), strict=False))
            cls._kept = given.get(of._kept, of._kept)
        if isinstance(cls._kept, type) and issubclass(cls._kept, BaseModel):
            cls.state_model = cls._kept
        elif not isinstance(cls._kept, typing.TypeVar):
            raise RegistryError(f"the state of the plugin {cls.__qualname__} must be a pydantic model: {cls._kept!r}")


def read_state(plugin: type[Stateful[Any]], view: View, before: int | None = None) -> BaseModel:
    """Return the plugin's state now, or as it was before the step with this id.

    The defaults, if this version of the plugin refuses what an earlier one recorded.
    """
    try:
        return plugin.state_model.model_validate(view.state(plugin.name, before))
    except Exception:  # noqa: BLE001 - whatever its validators raise: the conversation must go on
        return plugin.state_model()


def state_steps(
    plugin: type[Stateful[Any]], state: BaseModel, actor: str, view: View, before: int | None = None
) -> list[Step]:
    """Return the steps that record this state; none if it is the one that `read_state` returns.

    Raises what the plugin's own model raises for a state that it refuses: it could never be read again.
    """
    kept = view.state(plugin.name, before)
    if jsonable(state) == kept:
        return []  # as it was recorded: it could be read then, and was
    value = plain_json(state, f"the state of {plugin.name!r}")
    again = plugin.state_model.model_validate(value)
    if not isinstance(value, dict) or plain_json(again) != value:
        raise ValueError(f"the state of {plugin.name!r} would be another one when it is read again")
    recorded = Step(actor, "state", {"plugin": plugin.name, "value": value})
    try:
        read = plugin.state_model.model_validate(kept)
    except Exception:  # noqa: BLE001 - see read_state
        return [Step("runtime", "note", {"code": STATE_RESET, "message": RESET.format(plugin.name)}), recorded]
    return [] if value == plain_json(read) else [recorded]


STATE_RESET = "state_reset"
"""The code of the note that a plugin's state began anew."""
RESET = "The recorded state of the plugin {!r} is not one that its present version knows, so it began anew."
