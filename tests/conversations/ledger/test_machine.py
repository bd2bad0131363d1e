"""Random programs of prompts, calls, decisions, crashes, takeovers and stops, compared with a reference (I1-I6)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from asgiref.sync import AsyncToSync, async_to_sync
from django.contrib.auth.models import User
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agents.engine.errors import ToolError
from agents.engine.interfaces.messages import AssistantMessage, UserMessage
from agents.engine.interfaces.provider import Answer, Request
from conversations.approvals.decisions import Conflict, decide
from conversations.approvals.expiry import expire_due
from conversations.database.sql import now
from conversations.ledger.claims import Claim, claim, claimable
from conversations.models import Conversation, Output, Prompt, Quota, Step
from conversations.prompts.start import TurnInProgress, cancel_prompt, continue_prompt, start_conversation, start_prompt
from conversations.verification.stored import verify
from conversations.worker.drafts import Drafts
from conversations.worker.runner import Runner
from tests.budget import NIGHTLY
from tests.conversations.recorded import LEASE, Site, meddle, pending
from tests.conversations.reference import KINDS, TOOLS, Call, Turn, payload, program
from tests.conversations.support import person
from tests.engine.cast import site as cast
from tests.engine.support import ScriptedProvider, call, says, seen

T = TypeVar("T")
EXAMPLES, SHORTEST, LONGEST = (500, 30, 90) if NIGHTLY else (10, 15, 45)
RECORDS = st.integers(1, 6)
ACTS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "works": st.tuples(),
    "says": st.tuples(st.lists(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3), min_size=1, max_size=2)),
    "decides": st.tuples(
        st.integers(0, 5),
        st.sampled_from(["approve", "approve", "reject", "edit", "expired"]),
        st.sampled_from(["it_ran", "it_did_not", "run_again"]),
    ),
    "dies": st.tuples(RECORDS, st.booleans()),
    "is_overtaken": st.tuples(RECORDS),
    "is_delivered_twice": st.tuples(),
    "stops": st.tuples(),
    "goes_on": st.tuples(),
}
"""What may happen, and with what. Drawn before anything runs: what is drawn never hangs on how the threads of a batch
happened to take their turns. What cannot happen where its turn comes is passed over."""
PROGRAMS = st.lists(
    st.one_of([st.tuples(st.just(name), drawn) for name, drawn in ACTS.items()]), min_size=SHORTEST, max_size=LONGEST
)
EVERY_ACT = [
    ("says", ([["gated", "free"], ["read"]],)),
    ("dies", (3, True)),
    ("is_overtaken", (1,)),
    ("works", ()),
    ("decides", (0, "edit", "it_ran")),
    ("is_delivered_twice", ()),
    ("says", ([["gated"]],)),
    ("works", ()),
    ("stops", ()),
    ("works", ()),
    ("goes_on", ()),
    ("works", ()),
]


class Lost(BaseException):
    """The worker is gone: what is not recorded is lost."""


class Pen:
    """What a runner writes with. Something happens before or after its n-th record: it dies, or is overtaken."""

    def __init__(self, n: int, *, after: bool, happens: Callable[[], Awaitable[None]]) -> None:
        self._left, self._after, self._happens = n, after, happens
        self._dead = False

    async def __call__(self, function: Callable[..., T], *args: Any) -> T:
        if self._dead:
            raise Lost
        records = any(getattr(called, "__name__", "") == "_commit_next" for called in (function, *args))
        self._left -= records
        if not (records and self._left == 0):
            return await here(function, *args)
        done = await here(function, *args) if self._after else None
        try:
            await self._happens()
        except Lost:
            self._dead = True
            raise
        return await here(function, *args) if not self._after else done  # type: ignore[return-value]


async def here(function: Callable[..., T], *args: Any) -> T:
    """What a runner writes with: the test's own thread, while its loop waits.

    So a program that is played again does the same again.
    """
    done: T = AsyncToSync.executors.current.submit(function, *args).result()
    return done


async def lost() -> None:
    raise Lost


def answer(request: Request) -> Answer:
    """What the model asks for: the next batch of what was said last."""
    history = seen(request)
    last = max(n for n, message in enumerate(history) if isinstance(message, UserMessage) and message.text[:1] == "[")
    batches = program(history[last].text)  # type: ignore[union-attr]
    done = sum(isinstance(message, AssistantMessage) and bool(message.calls) for message in history[last:])
    if done >= len(batches):
        return says("Done.")
    return says("Some things.", *(call(TOOLS[kind], **payload(kind, name)) for kind, name in batches[done]))


def fail(asked: Any) -> None:
    raise ToolError("It cannot.")


class Machine:
    """One conversation. `turn` is what the reference says of each prompt."""

    def __init__(self, site: Site, ann: User, kim: User) -> None:
        self.site, self.ann, self.kim = site, ann, kim
        self.turn: dict[int, Turn] = {}
        self.named = 0
        self.seen = Counter[str]()
        site.world.done.clear()
        site.world.at["pay"] = fail
        registry, _ = cast(ScriptedProvider(answer), site.world.tools())
        site.monkeypatch.setattr("agents.registry.policies", lambda: registry)
        self.conversation = start_conversation(ann)

    def can(self, act: str) -> bool:
        """Whether this can happen now."""
        needs: dict[str, Callable[[], object]] = {"stops": self.open, "goes_on": self.left, "decides": self.gates}
        return act == "says" or bool(needs.get(act, self.work)())

    def ends(self) -> None:
        """No turn is left that the next program's workers would find."""
        if prompt := self.open():
            cancel_prompt(prompt.pk, self.ann)
            if self.work():  # a worker was lost in it: another ends it
                self.works()
        assert not self.open()

    # What people do

    def says(self, kinds: list[list[str]]) -> None:
        batches = [[[kind, self._name()] for kind in batch] for batch in kinds]
        if self.open():
            with pytest.raises(TurnInProgress):
                start_prompt(self.conversation, self.ann, json.dumps(batches))
        else:
            self.turn[start_prompt(self.conversation, self.ann, json.dumps(batches)).pk] = Turn()

    def decides(self, n: int, how: str, answered: str) -> None:
        gates = self.gates()
        gate = gates[n % len(gates)]
        asked = self.call(gate.prompt_id, gate.path)
        if how == "expired":
            meddle("UPDATE conversations_output SET expires_at = '2020-01-01' WHERE id = %s", [gate.pk])
            assert expire_due() == 1
        elif gate.ask == "interrupted":
            how = answered
            decide(gate.pk, self.ann, how, digest=gate.digest, via="page")
        elif how == "edit":
            asked.edited = self._name()
            decide(gate.pk, self.ann, "approve", digest=gate.digest, via="page", input={"command": asked.edited})
        else:
            decide(gate.pk, self.ann, how, digest=gate.digest, via="page")
        if gate.ask == "interrupted":
            asked.answers.append(how)
        else:
            asked.decided = how
        with pytest.raises(Conflict):
            decide(gate.pk, self.kim, "reject" if how != "reject" else "approve", digest=gate.digest, via="api")

    def stops(self) -> None:
        prompt = self.open()
        assert prompt
        cancel_prompt(prompt.pk, self.ann)
        self.turn[prompt.pk].stopped = True

    def goes_on(self) -> None:
        last = self.left()
        assert last
        self.turn[continue_prompt(last.pk, self.ann).pk] = Turn()

    # What workers do

    def works(self) -> None:
        self._run(self._claim(), here)

    def dies(self, n: int, after: bool) -> None:
        """A worker is lost before or after a commit, and its lease lapses."""
        held = self._claim()
        self._run(held, Pen(n, after=after, happens=lost))
        self._lapses(held)

    def is_overtaken(self, n: int) -> None:
        """A worker stands still before a record; another takes over and works; then the first one writes on."""
        held, left = self._claim(), list[int]()

        async def overtaken() -> None:
            await here(self._lapses, held)
            if other := await here(claim, held.prompt, "worker:other", LEASE):
                self.turn[held.prompt].lost += 1
                await self._runner(other, here)()
                left.append(await here(self._last))

        self._run(held, Pen(n, after=False, happens=overtaken))
        assert left in ([], [self._last()])  # who was overtaken writes nothing any more
        self.seen["overtaken"] += len(left)
        self._lapses(held)

    def is_delivered_twice(self) -> None:
        """Two workers hear of one prompt: one claims it."""
        prompt = self.work()[0]
        held = self._claim()
        assert claim(prompt, "worker:other", LEASE) is None
        self._run(held, here)

    # What must hold

    def holds(self) -> None:
        if not self.turn:
            return
        self._look()
        assert verify(self.conversation.pk).problems == []
        open_prompts = [pk for pk in self.turn if not Prompt.objects.get(pk=pk).ended]
        slot = Conversation.objects.get(pk=self.conversation.pk).active_prompt_id
        assert open_prompts == ([slot] if slot else [])
        agreed = Counter[str]()
        for turn in self.turn.values():
            for asked in turn.calls.values():
                name, times = asked.agreed()
                agreed[name] += times  # type: ignore[assignment]
        effects = Counter(str(what) for _, what in self.site.world.done)
        assert {name: times for name, times in effects.items() if times > agreed[name]} == {}
        for pk, turn in self.turn.items():
            self._ended_well(Prompt.objects.get(pk=pk), turn, effects)

    def _ended_well(self, prompt: Prompt, turn: Turn, effects: Counter[str]) -> None:
        ends = Step.objects.filter(prompt=prompt, path="", type="action_result").count()
        assert ends == prompt.ended
        if prompt.ended:
            assert (prompt.state, prompt.stop_reason) in turn.ends()
        closed = turn.stopped or prompt.stop_reason == "crash_loop"
        for path, asked in turn.calls.items():
            results = Step.objects.filter(prompt=prompt, path=path, type="action_result")
            assert results.count() == 1 or not prompt.ended
            for result in results:
                code = result.content.get("code", "success")
                assert code in asked.results(turn.lost, closed), (path, asked, code)
                if code == "success":
                    assert effects[asked.edited or asked.name]

    def _look(self) -> None:
        """Tell the reference of the calls that the model has asked for."""
        for pk, turn in self.turn.items():
            for step in Step.objects.filter(prompt=pk, type="action_call").exclude(path=""):
                said = step.content
                kind = next((kind for kind, tool in TOOLS.items() if tool == said["policy"]), None)
                if kind and step.path not in turn.calls:
                    turn.calls[step.path] = Call(kind, str(next(iter(said["payload"].values()))))

    # What is there

    def open(self) -> Prompt | None:
        return Prompt.objects.filter(pk__in=self.turn, ended_at=None).first()

    def gates(self) -> list[Output]:
        prompt = self.open()
        return pending(prompt) if prompt else []

    def left(self) -> Prompt | None:
        """The last prompt, where it can go on."""
        last = Prompt.objects.filter(pk__in=self.turn).last()
        return last if last and last.ended and last.state != "completed" and last.fence else None

    def call(self, prompt: int, path: str) -> Call:
        self._look()
        return self.turn[prompt].calls[path]

    def work(self) -> list[int]:
        return [prompt for prompt in claimable(10) if prompt in self.turn]

    def _last(self) -> int:
        return Conversation.objects.get(pk=self.conversation.pk).seq

    def _name(self) -> str:
        self.named += 1
        return str(self.named)

    def _claim(self) -> Claim:
        held = claim(self.work()[0], "worker:test", LEASE)
        assert held
        return held

    def _runner(self, held: Claim, write: Any) -> Runner:
        return Runner(held, "worker:test", write, Drafts(write), lambda: True)

    def _run(self, held: Claim, write: Any) -> None:
        try:
            async_to_sync(self._runner(held, write))()
        except Lost:
            self.turn[held.prompt].lost += 1
            self.seen["lost"] += 1

    def _lapses(self, held: Claim) -> None:
        """The lease of a worker that gave nothing back."""
        own = "WHERE id = %s AND fence = %s AND lease_until > 0"
        meddle(f"UPDATE conversations_prompt SET lease_until = {now()} - 1 {own}", [held.prompt, held.fence])


@pytest.mark.django_db
def test_a_random_program_comes_to_what_the_reference_says(site: Site) -> None:
    """T-20, T-23: crashes before and after every commit, takeovers, stops and decisions in any order."""
    ann, kim = person("ann"), person("kim", "decide_approval")
    Quota.objects.create(user=ann, running_prompts=0)  # none: a long program has more turns than a person may
    happened = Counter[str]()

    @settings(max_examples=EXAMPLES, print_blob=True, database=None, suppress_health_check=list(HealthCheck))
    @example(EVERY_ACT)
    @given(PROGRAMS)
    def plays(program: list[tuple[str, tuple[Any, ...]]]) -> None:
        machine = Machine(site, ann, kim)
        try:
            for act, drawn in program:
                if machine.can(act):
                    getattr(machine, act)(*drawn)
                    machine.holds()
                    happened[act] += 1
        finally:
            machine.ends()
            happened.update(machine.seen)

    plays()
    assert set(happened) == {*ACTS, "lost", "overtaken"}
