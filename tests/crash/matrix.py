"""The crash matrix: a scenario runs undisturbed, then once for each point, killed there or stopped for a while."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from django.db import OperationalError

from conversations.database.busy import is_busy
from conversations.models import Prompt, State, Step
from conversations.prompts.waking import wake_due
from tests.crash.checks import Killed, Undisturbed, recorded, told, violations
from tests.crash.databases import Databases
from tests.crash.model import Model, serving
from tests.crash.points import POINTS, crash_point
from tests.crash.scenarios import Scenario
from tests.crash.site import Site, fresh
from tests.crash.stall import Stall
from tests.crash.workers import Lean, Whole, Worker

PATIENCE_SECONDS = 120.0
CARDS = ("it_did_not", "run_again")
WHOLE_EVERY = 5
"""One in this many points is walked with the whole worker, the others with a drain alone."""
How = Literal["kill", "stop"]


@dataclass(frozen=True)
class Walk:
    """A run that is killed, or stopped beyond its lease, at the n-th pass of a point; n = 0: never.

    `cp`: the crash point that this pass is. `whole`: by the whole worker.
    """

    scenario: Scenario
    point: str
    n: int
    cp: str = ""
    how: How = "kill"
    whole: bool = False
    card: str = CARDS[0]

    @property
    def name(self) -> str:
        return f"{self.scenario.name}_{self.point}_{self.n}_{self.how}".lower()


@dataclass(frozen=True)
class Walked:
    """The result of a walk. `reached`: whether the kill happened."""

    walk: Walk
    reached: bool
    cards: int
    seconds: float
    violations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Matrix:
    """The runs on one kind of database, with their source of databases, folders and models."""

    folder: Path
    source: Databases
    models: dict[str, Model]

    def undisturbed(self, scenario: Scenario) -> Undisturbed:
        """Run it once without a kill; return its result, and how often it passes each point."""
        walk = Walk(scenario, "none", 0)
        with self._site(walk) as site:
            prompt, _ = self._turn(site, walk)
            prompt.refresh_from_db()
            usual = Undisturbed(recorded(prompt, site), prompt.fence, _passes(site), told(site))
            if found := violations(site, prompt, scenario, usual, Killed("", "kill", {})):
                raise AssertionError(f"{scenario.name}, undisturbed: {found}")
            return usual

    def walk(self, walk: Walk, usual: Undisturbed) -> Walked:
        """Run it to its end with one kill; then check it."""
        began = time.monotonic()
        with self._site(walk) as site:
            try:
                prompt, cards = self._turn(site, walk)
            except TimeoutError as error:
                return Walked(walk, _reached(site, walk), 0, time.monotonic() - began, [str(error)])
            found = violations(site, prompt, walk.scenario, usual, Killed(walk.point, walk.how, cards))
            answered = sum(len(said) for said in cards.values())
            return Walked(walk, _reached(site, walk), answered, time.monotonic() - began, found)

    def _site(self, walk: Walk) -> AbstractContextManager[Site]:
        return fresh(walk.name, self.folder, self.source, self.models[walk.scenario.name])

    def _turn(self, site: Site, walk: Walk) -> tuple[Prompt, dict[str, list[str]]]:
        """Run one turn from its message to its end; return it, and how cards were answered."""
        passes = site.folder / "passes"
        crash = {
            "AGENTSITE_CRASH": f"{walk.point}:{walk.n}:{walk.how.upper()}:{passes}",
            **walk.scenario.settings,
        }
        worker: Worker = Whole(site, **crash) if walk.whole else Lean(site, **crash)
        stall = Stall(passes, until_ended=walk.n % 2 == 0)
        prompt = site.start(walk.scenario)
        cards: dict[str, list[str]] = {}
        deadline = time.monotonic() + PATIENCE_SECONDS
        try:
            while not (prompt.ended and stall.over(worker)):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"not ended in {PATIENCE_SECONDS:g} s: {prompt.state}\n{_told(site, prompt)}")
                stall.tend(prompt)
                worker.tend(stall.pid)
                if prompt.state in (State.WAITING, State.SLEEPING):  # earlier, the ledger would have no pause
                    with _once_more_if_busy():
                        _answer(site, prompt, walk, cards)
                        if not walk.whole:  # then nobody else looks whether a sleep is over
                            wake_due()
                time.sleep(0.03)
                prompt.refresh_from_db()
        finally:
            worker.stop()
        return prompt, cards


@contextmanager
def _once_more_if_busy() -> Iterator[None]:
    """Let what was refused be tried at the next look: a process may have been stopped while it had SQLite's lock."""
    try:
        yield
    except OperationalError as error:
        if not is_busy(error):
            raise


def _answer(site: Site, prompt: Prompt, walk: Walk, cards: dict[str, list[str]]) -> None:
    for output in site.pending(prompt):
        if output.ask == "question":
            site.answer(output, "this")
        elif output.ask == "interrupted":
            site.decide(output, walk.card)
            cards.setdefault(output.path, []).append(walk.card)
        else:
            remember = walk.scenario.remember.get(output.gate_path)
            site.decide(output, *walk.scenario.answers.get(output.gate_path, ("approve", "")), remember)


def _passes(site: Site) -> list[str]:
    counted = site.folder / "passes"
    return counted.read_text().splitlines() if counted.exists() else []


def _reached(site: Site, walk: Walk) -> bool:
    return sum(line.split()[0] == walk.point for line in _passes(site)) >= walk.n


def _told(site: Site, prompt: Prompt) -> str:
    steps = "\n".join(f"{step} {step.actor} {step.payload}" for step in Step.objects.filter(prompt=prompt))
    return f"{steps}\n{site.said()[-3000:]}"


@dataclass(frozen=True)
class Share:
    """Which points are walked, and how: every `step`-th, starting with the `offset`-th."""

    how: How = "kill"
    step: int = 1
    offset: int = 0

    def of(self, scenario: Scenario, usual: Undisturbed) -> list[Walk]:
        """Return the walks of a scenario. The kind of worker and the answer to cards vary between them."""
        seen, points = Counter[str](), []
        for point, _, about in sorted((line.partition(" ") for line in usual.passes), key=lambda each: each[0]):
            if point in POINTS:
                seen[point] += 1
                points.append((point, seen[point], crash_point(point, about, scenario.agent)))
        return [
            Walk(
                scenario,
                point,
                n,
                cp,
                self.how,
                whole=number % WHOLE_EVERY == 0 and self.how == "kill",
                card=CARDS[number % len(CARDS)],
            )
            for number, (point, n, cp) in enumerate(points[self.offset :: self.step])
        ]


def walked(
    folder: Path, source: Databases, scenarios: list[Scenario], share: Share, *, side_by_side: int
) -> Iterator[Walked]:
    """Walk this share of the points of these scenarios, several at a time."""
    with ExitStack() as stack:
        models = {s.name: stack.enter_context(serving({"*": s.rounds}, folder, s.name)) for s in scenarios}
        matrix = Matrix(folder, source, models)
        pool = ProcessPoolExecutor(side_by_side, multiprocessing.get_context("fork"))
        stack.callback(pool.shutdown, cancel_futures=True)
        usual = list(pool.map(matrix.undisturbed, scenarios))
        walks = [(walk, u) for s, u in zip(scenarios, usual, strict=True) for walk in share.of(s, u)]
        for job in [pool.submit(matrix.walk, *each) for each in walks]:
            yield job.result()
