"""What must hold after a turn, whatever was killed meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from agents.engine.ledger import JSON
from agents.engine.ledger import Step as EngineStep
from agents.engine.root import AGENT
from agents.plugins.memory import keeping
from conversations.ledger.reading import read_steps
from conversations.models import Grant, Prompt, Step
from conversations.verification.stored import verify
from tests.crash.scenarios import USAGE, Scenario
from tests.crash.site import Site
from tests.judge import differences
from tests.wire import request
from tests.wire.refusals import RequestError
from tests.wire.script import finished_rounds


@dataclass(frozen=True)
class Undisturbed:
    """An undisturbed run, in which nothing is killed: its ledger, its claims, and the points it passes.

    `told`: the system text and the tools of each round.
    """

    ledger: list[EngineStep]
    fence: int
    passes: list[str]
    told: dict[int, JSON]


@dataclass(frozen=True)
class Killed:
    """Where a run was killed or stopped, and how its cards were answered, by path of the interrupted call."""

    point: str
    how: str
    cards: dict[str, list[str]]


def violations(site: Site, prompt: Prompt, scenario: Scenario, usual: Undisturbed, killed: Killed) -> list[str]:
    """Return descriptions of everything that does not hold; empty if all is well."""
    prompt.refresh_from_db()
    return [
        *_end(prompt, scenario),
        *_effects(site.effects(), scenario, killed.cards),
        *_asked(site.asked(), prompt, usual, killed),
        *_told(site, usual),
        *_started(list(Step.objects.filter(prompt=prompt).order_by("seq")), usual),
        *_used(prompt, scenario),
        *_granted(prompt),
        *_remembered(site, scenario),
        *map(str, verify(prompt.conversation_id).problems),
        *_refused(site.asked()),
        *_ledger(site, prompt, scenario, usual),
    ]


def _granted(prompt: Prompt) -> Iterator[str]:
    """A grant is used up as often as it decided, and no more often than was granted."""
    decided = Counter(Step.objects.filter(prompt=prompt, actor__startswith="grant:").values_list("actor", flat=True))
    for grant in Grant.objects.filter(prompt=prompt):
        if grant.used != decided[grant.actor] or grant.used > (grant.uses or 0):
            yield f"{grant.actor} was used {grant.used} times, decided {decided[grant.actor]} calls, of {grant.uses}"


def recorded(prompt: Prompt, site: Site) -> list[EngineStep]:
    """Return the ledger without what differs between sites: names and times."""
    return [replace(step, payload=_usual(step.payload, site)) for step in read_steps(prompt.conversation_id, prompt.pk)]


def _usual(value: JSON, site: Site) -> JSON:
    if isinstance(value, dict):
        return {key: None if key in VARIES else _usual(each, site) for key, each in value.items()}
    if isinstance(value, list):
        return [_usual(each, site) for each in value]
    return value.replace(site.name, "model") if isinstance(value, str) else value


ASKED_BEFORE = ("before_record", "before_commit", "draft")
"""Points at which an answer may have arrived without being recorded."""
VARIES = {"began", "expires_at", "file", "seconds", "stdout", "until"}
"""The keys whose values differ from run to run: times, and the id of a file that was stored anew."""


def _end(prompt: Prompt, scenario: Scenario) -> Iterator[str]:
    ends = Step.objects.filter(prompt=prompt, path="", type="action_result").count()
    usual = "text" if scenario.policy == AGENT else "done"
    if (ends, prompt.state, prompt.stop_reason) != (1, "completed", usual):
        yield f"ended {ends} times, as {prompt.state} ({prompt.stop_reason})"
    if prompt.lease_until or prompt.conversation.active_prompt_id:
        yield "lease or slot are still taken"
    if prompt.drafts.exists():
        yield "text on its way is left behind"


def _effects(effects: Counter[str], scenario: Scenario, cards: dict[str, list[str]]) -> Iterator[str]:
    """No effect happens more often than a person agreed to; no refused effect happens."""
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

    A lease that lapsed on a busy machine counts as a kill: a claim more than the kill and the cards explain. One that
    was only stopped may ask after another took over: it learns of that when it records.
    """
    rounds = Counter(finished_rounds(body) + 1 for body in bodies)
    answers = sum(len(said) for said in killed.cards.values())
    lapsed = max(0, prompt.fence - usual.fence - 1 - answers)
    allowed = lapsed + (killed.how == "stop" or killed.point in ASKED_BEFORE)
    again = sum(times - 1 for times in rounds.values())
    if again > allowed:
        yield f"the model was asked {dict(rounds)}, {again - allowed} too often"
    if set(rounds) != set(range(1, prompt.rounds + 1)):
        yield f"{prompt.rounds} rounds in the ledger, {sorted(rounds)} asked for"


def told(site: Site) -> dict[int, JSON]:
    """Return what each round was told besides the messages, when it was first asked."""
    return dict(reversed(_all_told(site)))


def _all_told(site: Site) -> list[tuple[int, JSON]]:
    """Return what each request tells besides the messages, with the number of its round."""
    return [
        (finished_rounds(body) + 1, _usual([body.get("instructions"), body.get("tools")], site))
        for body in site.asked()
    ]


def _told(site: Site, usual: Undisturbed) -> Iterator[str]:
    """Each round is told what it is told undisturbed, however often it is asked."""
    for number, about in _all_told(site):
        if about != usual.told.get(number):
            yield f"round {number} was told something else: {about}, instead of {usual.told.get(number)}"


def _remembered(site: Site, scenario: Scenario) -> Iterator[str]:
    """What is kept of the person in the end is what is to be, and found by its words; nothing else is."""
    person = site.person().pk
    kept = {memory.text for memory in keeping.of_person(person)}
    found = {memory.text for text in (*scenario.memories, *scenario.kept) for memory in keeping.find(person, text)}
    if not kept == found == set(scenario.kept):
        yield f"kept in the end: {sorted(kept)}; found: {sorted(found)}"


def _started(steps: list[Step], usual: Undisturbed) -> Iterator[str]:
    """Every answer of a model has a start, and calls with a gate start after its approval."""
    first: dict[tuple[str, str], Step] = {}
    for step in steps:
        first.setdefault((step.path, step.type), step)
    for (path, kind), step in first.items():
        if kind == "action_result" and step.actor == "model" and (path, "action_start") not in first:
            yield f"the answer at {path} has no start"
    gates = [step.path for step in usual.ledger if step.path.endswith("/human") and step.type == "action_call"]
    for gate in gates:
        start, decided = first.get((gate.removesuffix("/human"), "action_start")), first.get((gate, "action_result"))
        approved = decided is not None and decided.content.get("decision") == "approve"
        if start and not (approved and decided and decided.seq < start.seq):
            yield f"{start.path} was started without the approval it needs"


def _used(prompt: Prompt, scenario: Scenario) -> Iterator[str]:
    """The usage of each answer counts once, however often it was requested, also in the end of an agent's turn."""
    wanted = {name: number * prompt.rounds for name, number in USAGE.items()}
    end = Step.objects.filter(prompt=prompt, path="", type="action_result").first()
    said = end.content.get("usage", {}) if end else {}
    if scenario.policy != AGENT:  # the end of a program has its value alone
        said = wanted
    for name, number in wanted.items():
        if (getattr(prompt, name), said.get(name)) != (number, number):
            yield f"{name}: {number} were used, the prompt says {getattr(prompt, name)}, its end {said.get(name)}"


def _refused(bodies: list[Any]) -> Iterator[str]:
    for body in bodies:
        try:
            request.check(body)
        except RequestError as error:
            yield f"the API would refuse a request: {error.message}"


def _ledger(site: Site, prompt: Prompt, scenario: Scenario, usual: Undisturbed) -> Iterator[str]:
    """The ledger is as undisturbed, but for cards and what they explain; of what is side by side, each call's own."""
    now, before = recorded(prompt, site), usual.ledger
    if scenario.beside:
        now, before = (sorted(steps, key=lambda step: step.path) for steps in (now, before))
    for difference in differences(now, before):
        yield f"the ledger differs: {difference}"
