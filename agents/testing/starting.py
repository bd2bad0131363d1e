"""Starting trials: of one call of a tool, of an agent with a scripted model, of a policy, and of a workflow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from pydantic import SecretStr

from agents.engine import actors
from agents.engine.agent.model import model
from agents.engine.agent.turn import agent
from agents.engine.execution.effect import as_policy
from agents.engine.ledger import JSON
from agents.engine.limits import Limits
from agents.engine.runtime.action import Action
from agents.engine.runtime.policy import Context, Policy, Registered
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.schema import plain_json
from agents.engine.tools.plugin import Plugin
from agents.engine.tools.tool import Tool
from agents.testing.model import Script, ScriptedModel
from agents.testing.services import TrialServices
from agents.testing.trial import Trial


@runtime_checkable
class Startable(Protocol):
    """Something that people start with an input, such as a workflow: a policy, and the payload that it is run with."""

    @property
    def registered(self) -> Registered:
        """Its policy, with its budget."""
        ...

    def payload(self, input: dict[str, JSON], /) -> dict[str, JSON]:
        """Return the payload of a run with this input."""
        ...

    def taken_out(self, input: dict[str, JSON], /) -> tuple[dict[str, JSON], dict[str, str]]:
        """Return an input with references in place of its secrets, and these by field."""
        ...


@dataclass
class Trials:
    """Starts trials that share `services`, and so a workspace. `limits` are the budgets of each.

    `dies_at`: the process of each trial dies once, when it is about to write this record, counted from 1; another one
    goes on from the ledger. What a tool has done by then stays done. A call that began is not repeated, unless its tool
    says that it may be: its owner is asked what became of it.
    """

    services: TrialServices = field(default_factory=TrialServices)
    limits: Limits = field(default_factory=Limits)
    dies_at: int | None = None

    def call(self, tool: Tool, /, **input: Any) -> Trial:
        """Call a tool once, with this input. If it asks for approval, the call waits at the path "1"."""

        async def one_call(action: Action, ctx: Context) -> Any:
            return await ctx.call(Action(tool.name, action.payload))

        registry = PolicyRegistry({"trial": one_call, tool.name: as_policy(tool)})
        return self._start(registry, "trial", input, value_at="1")

    def turn(
        self,
        script: Script,
        *,
        tools: Iterable[Tool] = (),
        plugins: Iterable[Plugin[Any] | type[Plugin[Any]]] = (),
        prompt: str = "",
        text: str = "Go.",
    ) -> Trial:
        """Run a turn of an agent with these tools and plugins, in which a person said `text`.

        The model answers from the script: each answer is a text, a call (`asks`), or a list of both.
        """
        answers = agent(tools=list(tools), plugins=list(plugins), prompt=prompt)
        return self._start(PolicyRegistry({"agent": answers}), "agent", {"text": text}, script=script)

    def run(
        self,
        policy: Registered | Policy | Startable,
        /,
        *,
        tools: Iterable[Tool] = (),
        policies: Iterable[Registered | Startable] = (),
        script: Script = (),
        **payload: Any,
    ) -> Trial:
        """Run a policy with this payload, or a workflow with this input.

        It may call these tools and policies (or workflows), and agents that ask the script. A secret of the input is
        given like any other field, and is recorded and hidden as on a site: `trials.run(visit, password="...")`.
        """
        root = _registered(policy)
        given, secrets = (payload, {}) if not isinstance(policy, Startable) else _payload_of(policy, payload)
        offered = list(tools)
        registry = PolicyRegistry({each.name: as_policy(each) for each in offered})
        for each in (root, *map(_registered, policies)):
            registry.add(each)
        if registry.get("agent") is None:
            registry.register("agent")(agent(tools=offered))
        return self._start(registry, root.name, given, script=script, value_at="", secrets=secrets)

    def _start(
        self,
        registry: PolicyRegistry,
        policy: str,
        payload: dict[str, Any],
        *,
        script: Script = (),
        value_at: str | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> Trial:
        scripted = ScriptedModel(script)
        registry.register("model")(model(scripted, {"native": scripted, "json": scripted}))
        return Trial(
            registry,
            policy,
            plain_json(payload),
            model=scripted,
            services=self.services,
            limits=self.limits,
            by=actors.user(self.services.user),
            value_at=value_at,
            dies_at=self.dies_at,
            secrets=secrets,
        )


def _payload_of(policy: Startable, input: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the payload of a run with this input, and its secrets by field."""
    told = {key: each.get_secret_value() if isinstance(each, SecretStr) else each for key, each in input.items()}
    left, secrets = policy.taken_out(plain_json(told))
    return policy.payload(left), secrets


def _registered(policy: Registered | Policy | Startable) -> Registered:
    if isinstance(policy, Startable):
        return policy.registered
    return policy if isinstance(policy, Registered) else Registered("trial", policy)


def call(tool: Tool, /, **input: Any) -> Trial:
    """Call a tool once: see `Trials.call`."""
    return Trials().call(tool, **input)


def turn(script: Script, **options: Any) -> Trial:
    """Run a turn of an agent: see `Trials.turn`."""
    return Trials().turn(script, **options)


def run(policy: Registered | Policy | Startable, /, **options: Any) -> Trial:
    """Run a policy or a workflow: see `Trials.run`."""
    return Trials().run(policy, **options)
