"""The short way: what a policy does most often, each in one line: tools, agents, what people see, and chance.

All of it is recorded: a policy that runs again from its ledger gets what it got before, and nothing is done twice.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import UTC, datetime, timedelta
from secrets import SystemRandom
from typing import Any, TypeVar, overload
from uuid import UUID, uuid4

from pydantic import BaseModel

from agents.engine import actors
from agents.engine.errors import ToolError
from agents.engine.interfaces.services import Services
from agents.engine.ledger import JSON, Step, action_result, valid_text
from agents.engine.outputs.kinds import Output
from agents.engine.outputs.registry import fields_of, kind_name
from agents.engine.references import payload_json
from agents.engine.root import AGENT
from agents.engine.runtime.action import Action
from agents.engine.runtime.caller import Caller
from agents.engine.schema import parse, plain_json, problem
from agents.engine.secrets import hide
from agents.engine.view import SLEEP

T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)

SHOW, FILE, VALUE = "show", "file", "value"
"""What is called where a policy shows an output, gives people a file, or gets a value that differs each time."""

VALUES: dict[str, Callable[[Services], JSON]] = {
    "now": lambda services: services.now().astimezone(UTC).isoformat(),
    "uuid": lambda services: str(uuid4()),
    "random": lambda services: SystemRandom().random(),
}
"""Where the values of a `value` call come from."""


class Short(Caller):
    """The part of a context that makes the usual calls short."""

    def tool(
        self,
        name: str,
        /,
        *,
        key: str | None = None,
        input: dict[str, JSON] | BaseModel | None = None,
        **fields: object,
    ) -> Coroutine[Any, Any, JSON]:
        """Call a tool, or another policy, and return its value. A tool waits for people exactly as if a model asked.

        Its input is `fields`, or `input` as a whole. Raises ToolError for an error result, with its code: `rejected`,
        `expired`, `invalid_input`, the tool's own, and so on. A secret of the run's input is passed on
        by reference: `ctx.tool("login", password=flow.input.password)`. Raises TypeError for an input that is not JSON,
        and for any other secret, whose value would be recorded.
        """
        if input is not None and fields:
            raise TypeError(f"ctx.tool({name!r}) takes its input as `input` or as fields, not both")
        payload, secrets = payload_json(fields if input is None else input, f"the input of {name!r}")
        return value_of(self.call(Action(name, payload, secrets=secrets), key=key), lambda value: value)

    @overload
    def agent(
        self,
        text: str,
        *,
        tools: Iterable[str] | None = None,
        output: None = None,
        rounds: int = 10,
        key: str | None = None,
    ) -> Coroutine[Any, Any, str]: ...
    @overload
    def agent(
        self,
        text: str,
        *,
        tools: Iterable[str] | None = None,
        output: type[Model],
        rounds: int = 10,
        key: str | None = None,
    ) -> Coroutine[Any, Any, Model]: ...
    def agent(
        self,
        text: str,
        *,
        tools: Iterable[str] | None = None,
        output: type[BaseModel] | None = None,
        rounds: int = 10,
        key: str | None = None,
    ) -> Coroutine[Any, Any, Any]:
        """Let the site's agent work on this text, and return its answer: words, or an `output` (a pydantic model).

        It knows nothing of the conversation but the text. `tools`: the names of those it may use; by default it has
        those of every turn. `rounds`: how often it may ask the model at most; all of them count as rounds of the turn.
        Raises ToolError if it is stopped (`max_rounds`, `timeout`, `parse_failures`, ...) or the model fails, and
        `invalid_input` for a recorded answer that no longer fits `output`.
        """
        payload: dict[str, Any] = {"text": text, "rounds": rounds}
        if tools is not None:
            payload["tools"] = list(tools)
        if output is not None:
            payload["output"] = output
        return value_of(self.call(Action(AGENT, payload), key=key), str if output is None else _as(output))

    def show(self, output: Output, *, key: str | None = None) -> Coroutine[Any, Any, None]:
        """Show people an output of a registered kind: `await ctx.show(Itinerary(days=3))`. It is shown once.

        Raises ToolError `not_kept` for what cannot be kept.
        """

        async def showing() -> list[Step]:
            kind, fields = fields_of(output)
            return [Step(actors.policy(self.action.policy), kind, fields), action_result("runtime")]

        return self._do_once(SHOW, {"kind": kind_name(output)}, showing, key)

    def file(
        self, name: str, content: bytes, *, media_type: str, summary: str, key: str | None = None
    ) -> Coroutine[Any, Any, None]:
        """Give people a file; models read only its `summary`. It is stored once, before the step that names it.

        Raises ToolError if it cannot be stored, and TypeError for what is no file's content.
        """
        given: tuple[object, ...] = (name, content, media_type, summary)
        if [type(each) for each in given] != [str, bytes, str, str]:
            raise TypeError(f"the content of the file {name!r} must be bytes, and what is said about it text")
        named = {"name": hide(valid_text(name)), "summary": hide(valid_text(summary))}

        async def saving() -> list[Step]:
            kept = (named["name"], content, media_type, named["summary"])
            id = await self.recorder.services.save_file(*kept)
            return [Step(actors.policy(self.action.policy), "file", {"file": id, **named}), action_result("runtime")]

        return self._do_once(FILE, {"name": named["name"]}, saving, key)

    def now(self, *, key: str | None = None) -> Coroutine[Any, Any, datetime]:
        """Return the time in UTC, as it was when the policy first got here."""
        return self._value("now", datetime.fromisoformat, key)

    def uuid(self, *, key: str | None = None) -> Coroutine[Any, Any, UUID]:
        """Return a new random UUID, the same one whenever the policy runs again."""
        return self._value("uuid", UUID, key)

    def random(self, *, key: str | None = None) -> Coroutine[Any, Any, float]:
        """Return a random number from 0 to 1, the same one whenever the policy runs again."""
        return self._value("random", float, key)

    def sleep(
        self, *, until: datetime | None = None, seconds: float | None = None, key: str | None = None
    ) -> Coroutine[Any, Any, None]:
        """Wait until this time, or for so many seconds. No worker waits meanwhile, and it is no running time.

        The time is fixed when the policy first gets here; it may be months away. Raises ValueError for a time without a
        zone, or that no calendar has.
        """
        if (until is None) == (seconds is None):
            raise TypeError("ctx.sleep takes a time, `until`, or a number of `seconds`")
        if until is not None and until.tzinfo is None:
            raise ValueError(f"the time to sleep until needs its zone: {until.isoformat()} has none")
        if seconds is not None and not 0 <= seconds < math.inf:
            raise ValueError(f"a policy sleeps for 0 seconds or more, not {seconds!r}")
        return self._sleep(self.take_path(key), until, seconds)

    async def _sleep(self, path: str, until: datetime | None, seconds: float | None) -> None:
        recorded = self.recorder.view.call(path)
        over = recorded.payload["payload"].get("until") if recorded else None
        if over is None:
            try:
                given = self.recorder.services.now() + timedelta(seconds=seconds or 0) if until is None else until
                over = given.astimezone(UTC).isoformat()
            except OverflowError as error:
                raise ValueError("no calendar has the time to sleep until: it is too far away") from error
        await value_of(self.call_at(path, Action(SLEEP, {"until": over})), lambda value: value)

    def done(self, value: object = None) -> list[Step]:
        """Return the end of this policy, with its value: anything that pydantic can write as JSON.

        Raises TypeError or ValueError for what cannot be JSON.
        """
        return [action_result(self.action.policy, plain_json(value), state="completed", stop_reason="done")]

    def _value(self, of: str, read: Callable[[JSON], T], key: str | None) -> Coroutine[Any, Any, T]:
        async def drawing() -> list[Step]:
            return [action_result("runtime", VALUES[of](self.recorder.services))]

        return value_of(self.call_at(self.take_path(key), Action(VALUE, {"of": of}), drawing), read)

    def _do_once(
        self, name: str, payload: dict[str, JSON], work: Callable[[], Awaitable[list[Step]]], key: str | None
    ) -> Coroutine[Any, Any, None]:
        return value_of(self.call_at(self.take_path(key), Action(name, payload), work), lambda value: None)


async def value_of(call: Awaitable[list[Step]], read: Callable[[JSON], T]) -> T:
    """Return the value of a call, read by this function. Raises ToolError for an error result."""
    result = (await call)[-1]
    if result.failed:
        raise ToolError(result.payload["message"], result.payload["code"])
    return read(result.value)


def _as(model: type[Model]) -> Callable[[JSON], Model]:
    def read(value: JSON) -> Model:
        if why := problem(model, value) if isinstance(value, dict) else "it is no object":
            raise ToolError(f"The recorded answer is no {model.__name__} any more: {why}", "invalid_input")
        return parse(model, value)

    return read
