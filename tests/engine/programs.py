"""Programs of policies: a program is data, drawn whole before it runs, so that each of its runs does the same.

A policy of a program does its acts, and returns what it says. It hears what its calls answer; its payloads, its ways
and what it says depend on that, so that whatever differs on a replay shows in the ledger.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from agents.engine import Action, Context, Ledger, PolicyRegistry, Step, ToolError, invoke_action, loop_wrapper
from agents.engine.agent.model import model
from agents.engine.agent.turn import agent
from agents.engine.execution.effect import as_policy
from agents.engine.ledger import JSON, action_call, digest, text
from agents.engine.paths import join
from agents.engine.runtime.decorators import calls_in
from agents.engine.runtime.policy import Decorator, Policy
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool
from tests.engine.cast import Name
from tests.engine.shortly import VALUES, Short, make, model_script, plain
from tests.engine.support import ScriptedProvider
from tests.judge import comparable

T = TypeVar("T")
TURNS = 2
DECORATORS: dict[str, Decorator] = {"loop": loop_wrapper(max_turns=TURNS), "invoke": invoke_action()}
HELPERS = ("errand", "asks", "look", "touch", "once", "gated", "missing")
"""What a part may call besides others: one that acts, one that asks for calls, tools of each kind, and nobody."""


@dataclass(frozen=True)
class Call:
    """Call this policy. `tells`: put what it has heard into the payload, as a ledger."""

    to: str
    key: str | None = None
    decorators: tuple[str, ...] = ()
    offered: frozenset[str] = frozenset()
    tells: bool = False


@dataclass(frozen=True)
class Gather:
    """Make these calls side by side."""

    calls: tuple[Call | Short, ...]


@dataclass(frozen=True)
class Ask:
    """Ask a person a question."""


@dataclass(frozen=True)
class Invoke:
    """Run the calls that an answer so far asked for, all or only what is offered."""

    only_offered: bool = False


@dataclass(frozen=True)
class Look:
    """Read the own ledger, and go one of these ways by what it holds: how much, of which types, or its last value."""

    by: str
    ways: tuple[tuple[Act, ...], ...]
    awaited: bool = False


@dataclass(frozen=True)
class Change:
    """Change the payload it was given."""


@dataclass(frozen=True)
class Fail:
    """Raise a ToolError."""


Act = Call | Gather | Ask | Invoke | Look | Change | Fail | Short


@dataclass(frozen=True)
class Say:
    """Return a text, with an id of its own: a UUID, a number, or none."""

    id: str = ""


@dataclass(frozen=True)
class Emit:
    """Return a call that is asked for; `by` is who asks."""

    to: str
    by: str = "assistant"


@dataclass(frozen=True)
class Result:
    """Return a result with this payload."""

    payload: str


@dataclass(frozen=True)
class Done:
    """Return the end of the short way."""


@dataclass(frozen=True)
class Pass:
    """Return the steps it has heard from its calls, or those of the ledger it was given: the last ones, or all."""

    what: str
    last: int | None = None


Said = Say | Emit | Result | Pass | Done
PAYLOADS: dict[str, dict[str, JSON]] = {
    "output": {"output": {"city": "Oslo"}},
    "own": {"city": "Oslo", "temp_c": 12},
    "none": {},
    "status": {"error": "disk", "status": 500},
    "error": {"error": True, "code": "NOT_FOUND", "message": "No such city."},
}


@dataclass(frozen=True)
class Part:
    """A policy of a program. `decorators` are those of its definition, the outermost first."""

    acts: tuple[Act, ...] = ()
    says: tuple[Said, ...] = ()
    decorators: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """Policies `part0`, the root, `part1` and so on; each calls later ones only. `decided`: what people may say."""

    parts: tuple[Part, ...]
    decided: tuple[str, ...] = ("approve",)


@dataclass
class Stage:
    """Where a program runs. `ran`: how often each call ran, by path. `did`: which kinds of acts it did.

    `finished`: the calls with a result in the ledger from which this run continues, with their values; `repeated` those
    that ran again, or had another value.
    """

    program: Program
    ran: Counter[str] = field(default_factory=Counter)
    did: Counter[str] = field(default_factory=Counter)
    finished: dict[str, JSON] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)

    def runs(self, path: str) -> None:
        """Note that the call at this path runs now."""
        self.ran[path] += 1
        if path in self.finished:
            self.repeated.append(path)

    def registry(self) -> PolicyRegistry:
        registry = PolicyRegistry()
        for number, part in enumerate(self.program.parts):
            registry.register(f"part{number}")(self._policy(part))
        registry.register("errand")(self._errand)
        registry.register("asks")(self._asks)
        tools = self._tools()
        for each in tools:
            registry.register(each.name, input=Name)(as_policy(each))
        registry.register("agent")(agent(tools=tools))
        registry.register("model")(model(ScriptedProvider(model_script)))
        return registry

    async def _errand(self, action: Action, ctx: Context) -> list[Step]:
        self.runs(ctx.path)
        return [text("errand", "done"), Step("errand", "action_result", {"name": action.payload.get("name")})]

    async def _asks(self, action: Action, ctx: Context) -> list[Step]:
        self.runs(ctx.path)
        return [
            text("assistant", "I need both."),
            *(action_call("assistant", n, {"name": n}) for n in ("errand", "once")),
        ]

    def _tools(self) -> list[Tool]:
        def act(call: ToolCall[Name]) -> str:
            self.runs(call.path)
            return f"did {call.input.name}"

        @tool("look", risk=Risk.READ)
        async def look(call: ToolCall[Name]) -> str:
            return act(call)

        @tool("touch", risk=Risk.WRITE, approval=False, idempotent=True)
        async def touch(call: ToolCall[Name]) -> str:
            call.widget("table", {"rows": [1]}, "one row")
            return act(call)

        @tool("once", risk=Risk.WRITE, approval=False)
        async def once(call: ToolCall[Name]) -> str:
            return act(call)

        @tool("gated")
        async def gated(call: ToolCall[Name]) -> str:
            return act(call)

        return [look, touch, once, gated]

    def _policy(self, part: Part) -> Policy:
        async def policy(action: Action, ctx: Context) -> list[Step]:
            self.runs(ctx.path)
            return await Doing(self, part, action, ctx).all()

        for name in reversed(part.decorators):
            self.did[f"{name} on a definition"] += 1
            policy = DECORATORS[name](policy)  # type: ignore[assignment]
        return policy


class Doing:
    """One run of a policy: what it has heard so far, and the steps of it that it may pass on."""

    def __init__(self, stage: Stage, part: Part, action: Action, ctx: Context) -> None:
        self.stage, self.part, self.action, self.ctx = stage, part, action, ctx
        self.given = tuple(action.ledger)
        rest = {key: value for key, value in action.payload.items() if key != "ledger"}
        self.heard: list[JSON] = [digest([comparable(self.given), rest, sorted(action.actions)])]
        self.steps: list[Step] = []
        self.values = 0

    async def all(self) -> list[Step]:
        for act in self.part.acts:
            await self.do(act)
        return [step for said in self.part.says for step in self.said(said)]

    # Acts

    async def do(self, act: Act) -> None:
        if not isinstance(act, Call):
            self.stage.did[type(act).__name__] += 1
        match act:
            case Call():
                await self.hear_from(lambda: self.called(act))
            case Gather():
                await self.gather(act)
            case Short():
                await self.shortly(act)
            case Ask():
                await self.hear_from(
                    lambda: self.ctx.call(Action("human", {"ask": "question", "question": self.words()}))
                )
            case Invoke():
                await self.invoke(act)
            case Look():
                await self.look(act)
            case Change():
                self.action.payload["added"] = [1]
                self.action.payload.setdefault("list", []).append("more")
            case Fail():
                raise ToolError(f"Tired of {self.words()}", "tired")

    async def hear_from(self, call: Callable[[], Coroutine[Any, Any, list[Step]]]) -> None:
        try:
            self.hears(await call())
        except ValueError as error:
            self.refused(error)

    def called(self, call: Call) -> Coroutine[Any, Any, list[Step]]:
        payload: dict[str, Any] = {"name": self.words()}
        if call.to.startswith("part"):
            payload |= {"list": [len(self.heard)]}
        if call.tells and call.to.startswith("part"):
            payload |= {"ledger": Ledger(tuple(self.steps))}
        for name in call.decorators:
            self.stage.did[f"{name} in a call"] += 1
        self.stage.did[f"call {call.to}" if call.to in HELPERS else "call a part"] += 1
        self.stage.did["call with a key"] += call.key is not None
        self.stage.did["call with a ledger"] += "ledger" in payload
        decorators = [DECORATORS[name] for name in call.decorators]
        return self.ctx.call(Action(call.to, payload, call.offered), decorators, key=call.key)

    async def shortly(self, act: Short) -> None:
        try:
            made = self.made(act)
        except ValueError as error:
            self.refused(error)
        else:
            self.heard.append(await made)

    def made(self, act: Short) -> Coroutine[Any, Any, JSON]:
        """What the policy hears of something that it does shortly: the value, or the error."""
        self.stage.did[f"shortly {act.way}"] += 1
        self.values += act.way in VALUES
        key = f"value{self.values}" if act.way in VALUES else act.key
        made = make(act, self.ctx, self.words(), key)

        async def hearing() -> JSON:
            try:
                value = plain(await made)
            except ToolError as error:
                return [error.code, error.message]
            if act.way not in VALUES:
                return value
            place = join(self.ctx.path, str(key))
            if self.stage.finished.get(place, value) != value:
                self.stage.repeated.append(place)
            return act.way  # not the value: in another play of the program it is another one

        return hearing()

    async def gather(self, gather: Gather) -> None:
        calls: list[Coroutine[Any, Any, Any]] = []
        for call in gather.calls:
            try:
                calls.append(self.made(call) if isinstance(call, Short) else self.called(call))
            except ValueError as error:
                self.refused(error)
        for answer, ledger in await self.ctx.gather(*map(self.in_branch, calls)):
            if isinstance(answer, list) and answer and isinstance(answer[0], Step):
                self.hears(answer)
            else:
                self.heard.append(answer)
            self.heard.append(ledger)

    async def in_branch(self, call: Coroutine[Any, Any, T]) -> tuple[T, str]:
        """What the call answers, and the policy's own ledger as it is then read beside it."""
        answer = await call
        return answer, digest(comparable(self.ctx.get_ledger()))

    async def invoke(self, act: Invoke) -> None:
        for call in calls_in(self.steps):
            if not any(step.type == "action_result" and step.path == call.path for step in self.steps):
                self.stage.did["invoke a call"] += 1
                self.hears(await self.ctx.invoke(call, allowed=self.action.actions if act.only_offered else None))

    async def look(self, look: Look) -> None:
        ledger = await self.ctx.get_ledger() if look.awaited else self.ctx.get_ledger()
        self.stage.did[f"look {'and wait ' * look.awaited}at the {look.by}"] += 1
        values = [step.value for step in ledger if step.type == "action_result" and not step.failed]
        measure = {"number": len(ledger), "types": [step.type for step in ledger], "value": values[-1:]}[look.by]
        self.heard.append([digest(measure), digest(comparable(ledger))])
        for act in look.ways[int(digest(measure)[:8], 16) % len(look.ways)]:
            await self.do(act)

    def refused(self, error: ValueError) -> None:
        """A key that another call has: the policy goes on without the call."""
        if not str(error).startswith("two calls of "):
            raise error
        self.stage.did["use a key again"] += 1
        self.heard.append(str(error))

    def hears(self, answer: Iterable[Step]) -> None:
        answer = list(answer)
        self.heard.append(digest(comparable(answer)))
        self.steps += map(replace, answer)
        for step in answer:  # what a policy does to what it is given changes no record
            step.payload["spoiled"] = True

    def words(self) -> str:
        """A word for all it has heard so far."""
        return digest(self.heard)[:12]

    # What it says

    def said(self, said: Said) -> list[Step]:
        match said:
            case Say(id):
                self.stage.did[f"say with {id or 'no id'}"] += 1
                made: Any = {"uuid": str(uuid.uuid4()), "number": 3, "": 0}[id]
                return [Step("assistant", "text", {"text": self.words()}, id=made)]
            case Emit(to, by):
                asked = "is" if to in self.action.actions else "is not"
                self.stage.did[f"ask for what {asked} offered"] += 1
                asks = self.action.policy if by == "itself" else by
                return [action_call(asks, to, {"name": self.words()})]
            case Result(payload):
                self.stage.did[f"result {payload}"] += 1
                return [Step(self.action.policy, "action_result", PAYLOADS[payload])]
            case Done():
                self.stage.did["done"] += 1
                return self.ctx.done({"words": self.words()})
            case Pass(what, last):
                passed = self.steps if what == "heard" else list(self.given)
                passed = passed if last is None else passed[-last:]
                if passed:
                    self.stage.did[f"pass on {what}{' in part' * (len(passed) == last)}"] += 1
                return passed
