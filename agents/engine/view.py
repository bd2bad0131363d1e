"""View: an index of one turn's steps by path, so that nothing has to walk the ledger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime

from agents.engine.actors import Actor, Kind
from agents.engine.ledger import JSON, Step, copy_json
from agents.engine.paths import HUMAN, parent

BOOKKEEPING = {
    *("action_call", "action_start", "action_retry", "action_deferred"),
    *("pause", "resume", "cancel", "note", "progress"),
}
"""Step types that record how a call proceeded, not what it said."""


def asked_for(step: Step) -> bool:
    """Whether this call was asked for by an answer (of a model), rather than made by a running policy."""
    return step.type == "action_call" and Actor.parse(step.actor).kind not in (Kind.RUNTIME, Kind.POLICY)


def opens_gate(step: Step) -> bool:
    """Whether this call asks a person. A model that asks for a tool named `human` does not."""
    return step.type == "action_call" and step.payload["policy"] == HUMAN and not asked_for(step)


SLEEP = "sleep"
"""The name of the policy by which others wait for a time."""


def sleeps(step: Step) -> bool:
    """Whether this call waits for a time. A model that asks for a tool of that name does not."""
    return step.type == "action_call" and step.payload["policy"] == SLEEP and not asked_for(step)


def until(call: Step) -> datetime:
    """Return the time for which a call of `sleep` waits. Raises ValueError or TypeError for none."""
    return datetime.fromisoformat(call.payload["payload"]["until"])


def is_round(step: Step) -> bool:
    """Whether a round of the turn begins here: a question to the model, by its agent, an agent within it or a program.

    However often a question is tried, it is one. Those of the turn's own agent count from their call on.
    """
    said, own = step.payload, "/" not in step.path
    if step.type == "action_call":
        told = said.get("payload")
        return own and said.get("policy") == "model" and isinstance(told, dict) and "round" in told
    asked = step.type == "action_start" and "tier" in said and said.get("attempt") == 1
    return asked and not (own and "snapshot" in said)


class View:
    """The steps of one turn, indexed by path. `states` is each plugin's state before the turn's first step."""

    def __init__(self, steps: Iterable[Step] = (), states: dict[str, dict[str, JSON]] | None = None) -> None:
        self.steps: list[Step] = []
        self.before = states or {}
        self._at: dict[str, list[Step]] = defaultdict(list)
        self._emitted: dict[str, list[Step]] = defaultdict(list)
        self._calls: dict[str, Step] = {}
        self._results: dict[str, Step] = {}
        self._by_id: dict[int, Step] = {}
        self._states: list[Step] = []
        self._rounds: Counter[str] = Counter()
        self.rounds = 0
        """How many rounds of the turn have begun, of all its agents and programs."""
        for step in steps:
            self.add(step)

    def add(self, step: Step) -> None:
        """Add a step after all others."""
        self.steps.append(step)
        self._by_id[step.id] = step
        self._at[step.path].append(step)
        if step.type == "action_call":
            self._calls[step.path] = step
            if step.path and asked_for(step):
                self._emitted[parent(step.path)].append(step)
        elif step.type == "action_result":
            self._results[step.path] = step
        elif step.type == "state":
            self._states.append(step)
        if is_round(step):
            self.rounds += 1
            self._rounds[step.path] += 1

    def rounds_but(self, path: str) -> int:
        """Return how many rounds have begun, without the one at `path`."""
        return self.rounds - self._rounds[path]

    def call(self, path: str) -> Step | None:
        """Return the call at `path`, or None if it was not made."""
        return self._calls.get(path)

    def result(self, path: str) -> Step | None:
        """Return the result of the call at `path`, or None while it has none."""
        return self._results.get(path)

    def __contains__(self, step: Step) -> bool:
        """Whether this very step stands in the turn's ledger, with this id."""
        return self._by_id.get(step.id) == step

    def at(self, path: str, type: str) -> list[Step]:
        """Return the steps of this type that belong to the call at `path`."""
        return [step for step in self._at.get(path, ()) if step.type == type]

    def emitted(self, path: str) -> list[Step]:
        """Return the calls that the answer at `path` asks for, in call order."""
        return self._emitted.get(path, [])

    def answer(self, path: str) -> list[Step]:
        """Return the answer of a call: what it passes on of other answers, then what it said itself, its result last.

        Its result names what it passes on: the path of each answer, alone or with the numbers of the steps.
        """
        passed_on: list[Step] = []
        for named in self._results[path].payload.get("returns", ()):
            source, numbers = (named, None) if isinstance(named, str) else named
            steps = self.said(source)
            passed_on += steps if numbers is None else [steps[number] for number in numbers]
        return [*passed_on, *self.said(path)]

    def said(self, path: str) -> list[Step]:
        """Return what the policy at `path` answered itself: what it said, what it asks for, and its result last.

        While the root runs, that is what its run was seeded with.
        """
        result = self._results.get(path)
        said = [step for step in self._at.get(path, ()) if step.type not in BOOKKEEPING and step is not result]
        return [*said, *self.emitted(path), *([result] if result else [])]

    def is_turn(self, path: str, of: str) -> bool:
        """Whether the call at `path` is a turn of the decorated call at `of`."""
        return path != of and parent(path) == of and bool(self._calls[path].payload.get("turn"))

    def open_calls(self) -> list[Step]:
        """Return the calls without a result, inner ones first."""
        return [call for path, call in reversed(self._calls.items()) if path not in self._results]

    def open_gates(self) -> list[Step]:
        """Return the gates, cards and questions that wait for a person."""
        return [call for call in self.open_calls() if opens_gate(call)]

    def open_sleeps(self) -> list[Step]:
        """Return the calls that wait for a time, the first to wake first."""
        return sorted((call for call in self.open_calls() if sleeps(call)), key=until)

    def own_steps(self, path: str, given: Iterable[str]) -> list[Step]:
        """Return the ledger of the policy that runs at `path`, which was given the answers of the calls `given` (S107).

        It holds what stands at its own path, and of each of these calls: the call, the calls it asked for, and results.
        These are in the order in which the calls were made: of calls side by side, another may end first each time.
        """
        steps = [step for step in self._at.get(path, ()) if step.type not in BOOKKEEPING]
        for each in sorted(given, key=lambda each: self._calls[each].id):
            answered = [step for step in self.answer(each) if step.type in ("action_call", "action_result")]
            steps += [self._calls[each], *answered]
        return list({step.id: step for step in steps}.values())

    def state(self, plugin: str, before: int | None = None) -> dict[str, JSON]:
        """Return a copy of the plugin's state now, or as it was before the step with this id."""
        for step in reversed(self._states):
            if step.payload["plugin"] == plugin and (before is None or step.id < before):
                return self._copy(step.payload["value"])
        return self._copy(self.before.get(plugin, {}))

    @staticmethod
    def _copy(value: dict[str, JSON]) -> dict[str, JSON]:
        """Copy a state, so that changing it in place does not change the ledger."""
        return {key: copy_json(each) for key, each in value.items()}

    def paused(self) -> bool:
        """Whether the turn is paused: its last `pause` has no `resume` after it."""
        marks = [step.type for step in self._at.get("", ()) if step.type in ("pause", "resume")]
        return bool(marks) and marks[-1] == "pause"

    def cancelled(self) -> Step | None:
        """Return the step that cancelled the turn, or None."""
        marks = self.at("", "cancel")
        return marks[0] if marks else None
