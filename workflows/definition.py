"""Workflows: functions that people start by name. Each is a policy of the engine, and so durable and on record."""

from __future__ import annotations

import inspect
import logging
import re
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from django.db import Error
from django.urls import reverse
from pydantic import BaseModel

from agents.categories import OTHER, Category
from agents.engine.closing import NOT_PERMITTED
from agents.engine.complaints import sentence
from agents.engine.errors import RegistryError, ReplayMismatch, ToolError
from agents.engine.execution.secrets import FORGED
from agents.engine.ledger import JSON, Step
from agents.engine.references import check_input, parse_marked, problems_of_run, secret_fields, secret_keys, taken_out
from agents.engine.root import WORKFLOW
from agents.engine.runtime.action import Action
from agents.engine.runtime.policy import Context, Registered
from agents.engine.schema import in_one_line, input_names, parse, plain_json, problems, schema_digest, schema_of
from agents.engine.secrets import SHORTEST_OF_RUN, RunSecrets, hide, hide_in, references_in
from agents.engine.tools.tool import NAME
from conversations.prompts.startable import Checked, InvalidInput
from workflows.files import check_files, given_files, upload_fields
from workflows.flow import Flow

if TYPE_CHECKING:  # a workflow is tested without a site, and there are no tables then
    from django.contrib.auth.models import User

logger = logging.getLogger(__name__)

NAME_MOST = 80
"""Maximum length of a workflow's name, in characters."""
TAKEN = ("categories", "runs", "batches")
"""Names that no workflow may have: they stand in addresses beside those of workflows."""
TOO_SHORT = "A secret needs 4 characters or more: a shorter one cannot be kept out of the record."
TOLD = "The value of a secret stands in this too, and must not be recorded. Write this without it."
LOST_RIGHT = "It was turned off, or whoever started it may not run it any more."


class NoInput(BaseModel):
    """The input of a workflow that takes none."""


@dataclass(frozen=True, eq=False)
class Workflow:
    """A workflow, as `workflow` made it of a function. People start it by its name; it is a Startable.

    `bare`: its function is a policy, of an action and a context. `owner`: where it was defined.
    """

    name: str
    function: Callable[..., Awaitable[Any]]
    input: type[BaseModel]
    title: str
    description: str
    category: Category
    permission: str | None
    confirm: bool
    schedulable: bool
    workspace: bool | Literal["required"]
    seconds: float
    rounds: int
    bare: bool
    owner: str

    kind: ClassVar[str] = "workflow"

    @property
    def policy_name(self) -> str:
        """The name of its policy, by which histories are filtered."""
        return f"{WORKFLOW}{self.name}"

    @property
    def schema(self) -> dict[str, JSON]:
        """The JSON Schema of its input."""
        return schema_of(self.input)

    @property
    def registered(self) -> Registered:
        """Its policy, with its budget."""
        policy = WorkflowPolicy(self)
        budget: dict[str, Any] = {"seconds": self.seconds, "rounds": self.rounds}
        return Registered(self.policy_name, policy, self.description, owner=self.owner, title=self.title, **budget)

    def payload(self, input: dict[str, JSON]) -> dict[str, JSON]:
        """Return the payload of a run with this input: beside it stands the digest of its schema."""
        return {"input": input, "schema": schema_digest(self.input)}

    def may(self, user: User) -> bool:
        """Whether this person may start it."""
        return self.why_not(user) is None

    def why_not(self, user: User) -> str | None:
        """Return why this person may not run it, in a sentence for them; None if they may."""
        from workflows.permissions import why_not

        return why_not(self.name, self.permission, user)

    def checked(self, input: dict[str, JSON], user: User) -> Checked:
        """Return what is recorded of this input, the secrets in it and the files. Raises InvalidInput."""
        input, files, wrong = given_files(self.input, input, user) if upload_fields(self.input) else (input, {}, {})
        if found := problems(self.input, input):
            typed = {key: text for key in secret_keys(self.input) if isinstance(text := input.get(key), str)}
            with RunSecrets(typed).hidden():
                raise InvalidInput({**_by_place((place, hide(why)) for place, why in found), **wrong})
        if wrong:
            raise InvalidInput(wrong)
        left, secrets = self.taken_out(input)
        if short := [name for name, value in secrets.items() if len(value) < SHORTEST_OF_RUN]:
            raise InvalidInput({name: [TOO_SHORT] for name in short})
        left |= _made_anew(self.input, input)
        with RunSecrets(secrets).hidden():
            if told := [name for name, value in left.items() if hide_in(value, keys=True) != value]:
                raise InvalidInput({name: [TOLD] for name in told})
        return Checked(self.payload(left), secrets, files)

    def taken_out(self, input: dict[str, JSON]) -> tuple[dict[str, JSON], dict[str, str]]:
        """Return an input with references in place of its secrets, and these by field; as it is if it is not valid."""
        return (input, {}) if problems(self.input, input) else taken_out(self.input, input)

    def placed(self, payload: dict[str, JSON], paths: Mapping[str, str]) -> dict[str, JSON]:
        """Return the payload with the paths of its files in the workspace of the run."""
        return payload | {"input": {**self.given(payload), **paths}}

    def summary(self, payload: dict[str, JSON]) -> str:
        """Return the line by which the same run would be started from a chat."""
        from workflows.line import line_of  # it takes a site

        return line_of(self.name, payload["input"], self.schema)

    def given(self, payload: dict[str, JSON]) -> dict[str, JSON]:
        """Return the input in a recorded payload; {} if it was redacted."""
        given = payload.get("input")
        return given if isinstance(given, dict) else {}

    @property
    def page(self) -> str:
        """The address of its form."""
        return reverse("workflow", args=[self.name])

    def again(self, prompt: int) -> str:
        """Return the address of its form with the input of this run."""
        return reverse("workflow-again", args=[self.name, prompt])


@dataclass(frozen=True, eq=False)
class WorkflowPolicy:
    """A workflow as a policy of the engine."""

    workflow: Workflow

    context: ClassVar[type[Flow[Any]]] = Flow

    async def __call__(self, action: Action, flow: Context) -> list[Step]:
        """Run the workflow from its ledger. Raises ToolError for whatever it does not catch itself.

        Whether its starter may run it is asked each time: they may have lost the right while it waited.
        """
        flow = cast(Flow[Any], flow)
        workflow, given = self.workflow, action.payload.get("input", {})
        if not await flow.services.may_start(workflow.policy_name):
            raise ToolError(LOST_RIGHT, NOT_PERMITTED)
        if flow.path and (forged := references_in(given).keys() - action.secrets):
            raise ToolError(f"{', '.join(sorted(forged))}: {FORGED}", "invalid_input")
        if why := in_one_line(problems_of_run(workflow.input, given)):
            raise ToolError(f"The input does not fit {workflow.title!r}: {why}", "invalid_input")
        flow.input = parse_marked(workflow.input, given)
        try:
            if workflow.bare:
                answer: list[Step] = await workflow.function(replace(action, payload=given), flow)
                return answer
            return flow.done(await workflow.function(flow))
        except (ToolError, ReplayMismatch, Error):
            raise
        except Exception as error:
            logger.exception("a workflow raised an error", extra={"prompt": flow.services.prompt})
            raise ToolError(f"{type(error).__name__}: {error}", "failed") from error


def _made_anew(model: type[BaseModel], input: dict[str, JSON]) -> dict[str, JSON]:
    """Return what a model makes anew each time for fields that this input leaves out, such as an id or today's date.

    It is recorded like what was typed: a run that goes on finds the same.
    """
    found: dict[str, JSON] = {}
    for name, field in model.model_fields.items():
        names = input_names(name, field)
        if field.default_factory and not any(each in input for each in names):
            found[str(names[0])] = plain_json(getattr(parse(model, input | found), name))
    made = {name: value for name, value in found.items() if value not in ([], {})}
    return {} if problems(model, input | made) else made


def workflow(
    name: str,
    *,
    title: str = "",
    category: Category = OTHER,
    permission: str | None = None,
    confirm: bool = False,
    schedulable: bool = True,
    workspace: bool | Literal["required"] = False,
    seconds: float = 1800,
    rounds: int = 40,
    input: type[BaseModel] | None = None,
) -> Callable[[Callable[..., Awaitable[Any]]], Workflow]:
    """Decorator: make a workflow of an async function of a Flow, or of an action and a context.

    `title`: what people read, by default made of its name; its docstring is its description. `permission`: the Django
    permission that it takes to run it, such as "shop.add_order"; None: every active person may. `confirm`: whether one
    more page asks before it starts. `schedulable`: whether it may start while nobody is there. `workspace`: whether its
    form lets people choose a chat of theirs to work in; "required": they have to, because it works on what is there.
    `seconds`: its running time, without waiting and sleeping. `rounds`: how often all its agents together may ask the
    model.

    Its input is the pydantic model in the annotation, as in `flow: Flow[CreateProject]`, or `input`. A field of it
    typed `SecretStr` is a secret: `flow.input` has a marker, and the value is given to tools alone. A workflow that
    needs one is not schedulable, whatever is said here: nobody would be there to enter it.

    Raises RegistryError for a name that is taken for something else, or is not lower-case words joined by dots, for
    what is no such function, for a secret that is no field of the input itself or has a validator, and for an uploaded
    file that is no such field or has a default.
    """

    def made(function: Callable[..., Awaitable[Any]]) -> Workflow:
        if not re.fullmatch(NAME, name) or len(name) > NAME_MOST:
            named = f"lower-case words joined by dots, at most {NAME_MOST} characters"
            raise RegistryError(f"a workflow's name must be {named}, not {name!r}")
        if name in TAKEN:
            raise RegistryError(f"no workflow can be called {name!r}: that is the address of something else")
        if not inspect.iscoroutinefunction(function):
            raise RegistryError(f"the workflow {name!r} must be an async function: async def")
        parameters = list(inspect.signature(function).parameters)
        if len(parameters) not in (1, 2):
            raise RegistryError(f"the workflow {name!r} takes a flow, or an action and a context")
        if seconds <= 0 or rounds < 0:
            raise RegistryError(f"the workflow {name!r} needs `seconds` above 0, and `rounds` from 0 on")
        model = input or _input_of(function, parameters[0])
        check_input(model, f"the workflow {name!r}")
        check_files(model, f"the workflow {name!r}")
        words = " ".join(re.split(r"[._-]", name))
        return Workflow(
            name=name,
            function=function,
            input=model,
            title=title or f"{words[:1].upper()}{words[1:]}",
            description=inspect.getdoc(function) or "",
            category=category,
            permission=permission,
            confirm=confirm,
            schedulable=schedulable and not _asks_for_secrets(model),
            workspace=workspace,
            seconds=seconds,
            rounds=rounds,
            bare=len(parameters) == 2,
            owner=f"{function.__module__}.{function.__qualname__}",
        )

    return made


def _by_place(found: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    places: dict[str, list[str]] = {}
    for named, why in found:
        for place in named.split(", "):  # several if no field has these names
            places.setdefault(place, []).append(sentence(why))
    return places


def _asks_for_secrets(model: type[BaseModel]) -> bool:
    """Whether somebody must be there to enter a secret."""
    return any(model.model_fields[name].is_required() for name in secret_fields(model))


def _input_of(function: Callable[..., Any], parameter: str) -> type[BaseModel]:
    """Return the model in the annotation `Flow[Model]` of this parameter; NoInput if it names none."""
    annotation = typing.get_type_hints(function).get(parameter)
    named = typing.get_args(annotation)
    if named and isinstance(named[0], type) and issubclass(named[0], BaseModel):
        return NoInput if named[0] is BaseModel else named[0]
    return NoInput
