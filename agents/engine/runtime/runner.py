"""The runner: a policy, a ledger and a registry, without a site (S121)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from agents.engine import actors
from agents.engine.interfaces.journal import MemoryJournal
from agents.engine.ledger import EMPTY, Ledger, Step
from agents.engine.limits import Limits
from agents.engine.runtime.policy import Policy, Registered
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.runtime.run import Run


def _begins_a_run(step: Step) -> bool:
    """Whether this is a person's call of a root, with which the ledger of a run begins."""
    by_person = actors.Actor.parse(step.actor).kind == actors.Kind.USER
    return step.type == "action_call" and not step.path and by_person and "policy" in step.payload


async def run(
    policy_name: str,
    payload: dict[str, Any],
    registry: PolicyRegistry | Mapping[str, Policy | Registered],
    ledger: Ledger = EMPTY,
    *,
    journal: MemoryJournal | None = None,
    limits: Limits | None = None,
    actions: Iterable[str] = (),
) -> Ledger:
    """Run a policy from an empty ledger, or that of an earlier run, until it ends or a person must decide.

    `registry` may be a dict of policies by name. `actions`: the names that the policy may offer, and that
    `invoke_action` runs if it is decorated with that. Returns the resulting ledger. Errors of a policy that are not
    data propagate, with what was recorded as their `ledger`; a run from it continues at the first call without a
    result. What a first run is given may hold texts, but no calls: then it raises ValueError, as it does for
    a journal that holds another ledger.
    """
    if not isinstance(registry, PolicyRegistry | Mapping):
        raise TypeError(f"the registry must be a PolicyRegistry or a dict, not a {type(registry).__name__}")
    if not isinstance(ledger, Ledger):
        raise TypeError(f"the ledger of a run must be a Ledger, not a {type(ledger).__name__}: Ledger(tuple(steps))")
    first = next((step for step in ledger if step.type in ("action_call", "action_result")), None)
    if first and not _begins_a_run(first):
        raise ValueError("this ledger has calls of no run: a conversation from elsewhere goes into payload['ledger']")
    policies = registry if isinstance(registry, PolicyRegistry) else PolicyRegistry(registry)
    if not first:  # its texts may be those of an earlier run, which had calls at their paths
        ledger = Ledger(tuple(replace(step, path="") for step in ledger))
    ledger = ledger.numbered()
    journal = journal or MemoryJournal(ledger)
    journal.go_on_from(ledger)
    try:
        await Run(policies, journal, steps=ledger, limits=limits).run_turn(policy_name, payload, actions=actions)
    except BaseException as error:
        with suppress(AttributeError, TypeError):  # an error that takes no attributes: its ledger is the journal's
            error.ledger = journal.ledger  # type: ignore[attr-defined]
        raise
    return journal.ledger
