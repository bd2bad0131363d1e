"""What must hold after a turn, whatever was killed meanwhile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agents.providers.demo import request
from agents.providers.demo.refusals import RequestError
from agents.providers.demo.script import finished_rounds
from conversations.models import Prompt, Step
from conversations.verification.stored import verify
from tests.crash.scenarios import Scenario
from tests.crash.site import Site

Line = tuple[str, str, str, str]


@dataclass(frozen=True)
class Undisturbed:
    """What a run looks like in which nothing is killed: its ledger, its claims, and the passes of each point."""

    lines: list[Line]
    fence: int
    passes: Counter[str]


@dataclass(frozen=True)
class Killed:
    """Where a run was killed, and how its cards were answered, by the interrupted call's path."""

    point: str
    cards: dict[str, list[str]]


def violations(site: Site, prompt: Prompt, scenario: Scenario, usual: Undisturbed, killed: Killed) -> list[str]:
    """What does not hold, in words; empty if all does."""
    prompt.refresh_from_db()
    return [
        *_end(prompt),
        *_effects(site.effects(), scenario, killed.cards),
        *_asked(site.asked(), prompt, usual, killed),
        *map(str, verify(prompt.conversation_id).problems),
        *_refused(site.asked()),
        *_ledger(site, prompt, usual, killed.cards),
    ]


def comparable(prompt: Prompt, site: Site) -> list[Line]:
    """The ledger without what differs from run to run: who worked, how often it was begun, names, times."""
    return [
        (step.path, step.actor, step.type, VARIES.sub("", step.payload.replace(site.name, "model")))
        for step in Step.objects.filter(prompt=prompt).order_by("seq")
        if step.type != "action_start"
    ]


VARIES = re.compile(r'"(expires_at|seconds|stdout)":("[^"]*"|[\d.e-]+)')


def _end(prompt: Prompt) -> Iterator[str]:
    ends = Step.objects.filter(prompt=prompt, path="", type="action_result").count()
    if (ends, prompt.state, prompt.stop_reason) != (1, "completed", "text"):
        yield f"ended {ends} times, as {prompt.state} ({prompt.stop_reason})"
    if prompt.lease_until or prompt.conversation.active_prompt_id:
        yield "lease or slot are still taken"
    if prompt.drafts.exists():
        yield "text on its way is left behind"


def _effects(effects: Counter[str], scenario: Scenario, cards: dict[str, list[str]]) -> Iterator[str]:
    """No effect more often than a person agreed to; none of what was refused."""
    for path in scenario.once:
        agreed = 1 + cards.get(path, []).count("run_again")
        if effects[path] > agreed:
            yield f"{path} was done {effects[path]} times, agreed to {agreed} times"
        if not effects[path] and not cards.get(path):
            yield f"{path} was never done"
    for path in scenario.never:
        if effects[path]:
            yield f"{path} was refused, and done {effects[path]} times"


def _asked(bodies: list[Any], prompt: Prompt, usual: Undisturbed, killed: Killed) -> Iterator[str]:
    """Each round once; once more only where the kill fell between the request and the record of its answer.

    A lease that lapsed on a busy machine counts as a kill: a claim more than the kill and the cards explain.
    """
    rounds = Counter(finished_rounds(body) + 1 for body in bodies)
    answers = sum(len(said) for said in killed.cards.values())
    lapsed = max(0, prompt.fence - usual.fence - 1 - answers)
    allowed = lapsed + (1 if killed.point in ("before_commit", "draft") else 0)
    again = sum(times - 1 for times in rounds.values())
    if again > allowed:
        yield f"the model was asked {dict(rounds)}, {again - allowed} too often"
    if set(rounds) != set(range(1, prompt.rounds + 1)):
        yield f"{prompt.rounds} rounds in the ledger, {sorted(rounds)} asked for"


def _refused(bodies: list[Any]) -> Iterator[str]:
    for body in bodies:
        try:
            request.check(body)
        except RequestError as error:
            yield f"the API would refuse a request: {error.message}"


def _ledger(site: Site, prompt: Prompt, usual: Undisturbed, cards: dict[str, list[str]]) -> Iterator[str]:
    if cards:
        return
    lines = comparable(prompt, site)
    if lines != usual.lines:
        extra = [line for line in lines if line not in usual.lines]
        missing = [line for line in usual.lines if line not in lines]
        yield f"the ledger differs: {extra=} {missing=}" if extra or missing else "the ledger's order differs"
