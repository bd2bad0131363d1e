"""Questions of a policy: a text, one of some choices, or a form; asked again where today's form refuses the answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, field_validator

from agents import Action, Context, Step, ToolError
from agents.engine import Ledger
from agents.engine.deciding import answer, approve, reject
from agents.engine.ledger import EMPTY, JSON
from agents.engine.outputs.kinds import Pending, Success, ToolOutput
from agents.engine.outputs.timeline import Outputs
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.schema import schema_of
from agents.engine.secrets import keep_secret
from agents.engine.view import View
from conversations.verification.rules import problems_of
from tests.engine.journals import NOON, Crash, CrashingJournal, CrashPoint
from tests.engine.support import Site, carry_on, decide, end_of, lines, open_gates


class Trip(BaseModel):
    """Where do you want to go,
    and for how long?

    Not part of the question.
    """

    place: str
    days: int = Field(ge=1)


async def play(program: Any, ledger: Ledger = EMPTY, **options: Any) -> Ledger:
    registry = PolicyRegistry()
    registry.register("plan")(program)
    return await carry_on(registry, ledger, policy="plan", payload={}, **options)


def asks(form: Any, **options: Any) -> Any:
    """A policy that asks, and ends with the answer, or the code of the error."""

    async def plan(action: Action, ctx: Context) -> list[Step]:
        try:
            return ctx.done(await ctx.ask(form, **options))
        except ToolError as error:
            return ctx.done(f"{error.code}: {error.message}")

    return plan


def asked(ledger: Ledger, path: str = "1") -> dict[str, JSON]:
    call = View(ledger).call(path)
    assert call
    assert call.actor == "runtime"
    assert call.payload["policy"] == "human"
    return dict(call.payload["payload"])


def entry_of(ledger: Ledger) -> ToolOutput:
    (entry,) = (output for output in Outputs(ledger).in_order() if isinstance(output, ToolOutput))
    return entry


def value_of(ledger: Ledger) -> JSON:
    result = View(ledger).result("")
    assert result, lines(ledger)
    return result.value


async def test_a_question_in_words_is_answered_in_words() -> None:
    plan = asks("Which one?", hours=2)
    ledger = await play(plan)
    assert open_gates(ledger) == ["1"]
    said = asked(ledger)
    assert said.pop("digest")
    assert said == {
        "ask": "question",
        "question": "Which one?",
        "expires_at": (NOON + timedelta(hours=2)).isoformat(),
    }
    entry = entry_of(ledger)
    assert entry.result == Pending(reason="Which one?")
    assert entry.approval
    assert (entry.approval.path, entry.approval.ask, entry.approval.digest) == (
        "1",
        "question",
        asked(ledger)["digest"],
    )
    answered = answer(ledger, "1", by="user:7", answer="The blue one.")
    assert value_of(ended := await play(plan, answered)) == "The blue one."
    assert isinstance(entry_of(ended).result, Success)
    assert problems_of(ended) == []


async def test_choices_are_all_that_can_be_answered() -> None:
    plan = asks("Which one?", choices=["red", "blue"])
    ledger = await play(plan)
    assert asked(ledger)["choices"] == ["red", "blue"]
    for wrong in ("green", "", 1):
        with pytest.raises(ValueError, match="Choose one of: red, blue"):
            answer(ledger, "1", by="user:7", answer=wrong)
    assert value_of(await play(plan, answer(ledger, "1", by="user:7", answer="blue"))) == "blue"


async def test_a_form_is_filled_in() -> None:
    """Its question is the first paragraph of its docstring; the answer is one of the form."""
    plan = asks(Trip)
    ledger = await play(plan)
    assert asked(ledger)["question"] == "Where do you want to go, and for how long?"
    assert asked(ledger)["schema"] == schema_of(Trip) | {"propertyOrder": ["place", "days"]}
    wrong_ones: list[tuple[JSON, str]] = [
        (["x"], "answer: Give an object with fields"),
        ({"place": "Rome"}, "days: Field required"),
        ({"place": "Rome", "days": 0}, "days: Enter a number that is 1 or more"),
        ({"place": "Rome", "days": 1, "by": 2}, "by"),
    ]
    for wrong, why in wrong_ones:
        with pytest.raises(ValueError, match=why):
            answer(ledger, "1", by="user:7", answer=wrong)
    filled = answer(ledger, "1", by="user:7", answer={"place": "Rome", "days": 3})
    assert value_of(await play(plan, filled)) == {"place": "Rome", "days": 3}


async def test_a_form_without_a_docstring_asks_by_its_title() -> None:
    class Titled(BaseModel):
        model_config = ConfigDict(title="Trip details")
        place: str

    class Plain(BaseModel):
        place: str

    async def both(action: Action, ctx: Context) -> list[Step]:
        await ctx.gather(ctx.ask(Titled), ctx.ask(Plain))
        return []

    ledger = await play(both)
    assert [asked(ledger, path)["question"] for path in ("1", "2")] == ["Trip details", "Plain"]


def changed(wants: Callable[[str], bool]) -> type[BaseModel]:
    """The form as a later version has it: with a rule that no schema can say."""

    class Trip(BaseModel):
        """Where do you want to go,
        and for how long?
        """

        place: str
        days: int = Field(ge=1)

        @field_validator("place")
        @classmethod
        def known(cls, place: str) -> str:
            if not wants(place):
                raise ValueError(f"{place} is not on the map")
            return place

    return Trip


async def test_what_todays_form_refuses_is_asked_again() -> None:
    """At the next card of the question, with what was answered and what is wrong; an old answer is none to it."""
    ledger = await play(asks(Trip))
    first = asked(ledger)
    ledger = answer(ledger, "1", by="user:7", answer={"place": "Atlantis", "days": 3})
    plan = asks(changed(lambda place: place == "Rome"))
    ledger = await play(plan, ledger)
    assert open_gates(ledger) == ["1/card1"]
    again = asked(ledger, "1/card1")
    assert again["draft"] == {"place": "Atlantis", "days": 3}
    assert again["problems"] == {"place": ["Atlantis is not on the map"]}
    assert again["digest"] != first["digest"]
    assert entry_of(ledger).input == again
    assert entry_of(ledger).result == Pending(reason=first["question"])
    assert entry_of(ledger).approval.path == "1/card1"  # type: ignore[union-attr]
    assert await play(plan, ledger) == ledger
    ledger = await play(plan, answer(ledger, "1", by="user:7", answer={"place": "Rom", "days": 3}))
    assert open_gates(ledger) == ["1/card2"]
    assert asked(ledger, "1/card2")["draft"] == {"place": "Rom", "days": 3}
    assert asked(ledger, "1/card2")["digest"] != again["digest"]
    ledger = await play(plan, answer(ledger, "1/card2", by="user:7", answer={"place": "Rome", "days": 3}))
    assert value_of(ledger) == {"place": "Rome", "days": 3}
    assert entry_of(ledger).result == Success(
        output={"decision": "answer", "via": "program", "digest": asked(ledger, "1/card2")["digest"],
                "answer": {"place": "Rome", "days": 3}}
    )  # fmt: skip
    assert problems_of(ledger) == []


async def test_the_last_answer_counts_whatever_a_form_takes_by_then() -> None:
    """Once a question was asked again, what was answered before is past."""
    strict = asks(changed(lambda place: place == "Rome"))
    ledger = await play(asks(Trip))
    ledger = await play(strict, answer(ledger, "1", by="user:7", answer={"place": "Atlantis", "days": 3}))
    assert open_gates(ledger) == ["1/card1"]
    ledger = answer(ledger, "1/card1", by="user:7", answer={"place": "Rome", "days": 3})
    assert value_of(await play(asks(Trip), ledger)) == {"place": "Rome", "days": 3}


async def test_the_time_of_a_question_is_that_of_its_record() -> None:
    """A run at another time asks the same, and expects nothing else."""

    class Later(Site):
        def now(self) -> datetime:
            return NOON + timedelta(hours=1)

    plan = asks("Which one?")
    ledger = await play(plan)
    assert await play(plan, ledger, services=Later()) == ledger
    ended = await play(plan, answer(ledger, "1", by="user:7", answer="red"), services=Later())
    assert [step for step in ended if step.payload.get("code") == "payload_changed"] == []


async def test_an_answer_that_was_taken_is_not_judged_again() -> None:
    """Once something later is on record: what no longer fits is an error, and nobody is asked again."""

    def planning(form: type[BaseModel]) -> Any:
        async def plan(action: Action, ctx: Context) -> list[Step]:
            try:
                said: Any = (await ctx.ask(form)).model_dump()
            except ToolError as error:
                said = f"{error.code}: {error.message}"
            await ctx.ask("Sure?")
            return ctx.done(said)

        return plan

    ledger = await play(planning(Trip))
    ledger = await play(planning(Trip), answer(ledger, "1", by="user:7", answer={"place": "Atlantis", "days": 3}))
    assert open_gates(ledger) == ["2"]
    answered = answer(ledger, "2", by="user:7", answer="yes")
    assert value_of(await play(planning(Trip), answered)) == {"place": "Atlantis", "days": 3}
    late = await play(planning(changed(lambda place: False)), answered)
    assert value_of(late) == (
        "invalid_input: The recorded answer does not fit the question any more. place: Atlantis is not on the map"
    )
    assert problems_of(late) == []


async def test_beside_others_an_answer_is_judged_when_it_is_received() -> None:
    """What another branch records meanwhile does not count as later."""

    def planning(form: type[BaseModel]) -> Any:
        async def plan(action: Action, ctx: Context) -> list[Step]:
            both = await ctx.gather(ctx.ask(form), ctx.ask("Which?", choices=["a", "b"]))
            return ctx.done(str(both))

        return plan

    ledger = await play(planning(Trip))
    ledger = answer(ledger, "1", by="user:7", answer={"place": "Atlantis", "days": 3})
    later = planning(changed(lambda place: place == "Rome"))
    ledger = await play(later, answer(ledger, "2", by="user:7", answer="a"))
    assert open_gates(ledger) == ["1/card1"]
    ledger = answer(ledger, "1/card1", by="user:7", answer={"place": "Rome", "days": 1})
    assert value_of(await play(later, ledger)) == "[Trip(place='Rome', days=1), 'a']"


@pytest.mark.parametrize("after", [False, True])
async def test_nobody_is_asked_twice_wherever_it_crashes(after: bool) -> None:
    """Asked, refused, asked again and taken: the same ledger, whatever record the process dies at."""
    form = changed(lambda place: place == "Rome")

    async def plan(action: Action, ctx: Context) -> list[Step]:
        trip = await ctx.ask(form)
        return ctx.done([trip, await ctx.ask("Which?", choices=["a", "b"]), await ctx.approve("Go?", "Now.")])

    async def all_of_it(crash: CrashPoint) -> Ledger:
        ledger, places = EMPTY, ["Rom", "Rome"]
        while end_of(ledger) is None:
            journal = CrashingJournal(ledger, crash)
            try:
                await play(plan, ledger, journal=journal)
            except Crash:
                crash = CrashPoint(0)
            ledger = journal.ledger
            for gate in open_gates(ledger) if View(ledger).paused() else ():
                said = asked(ledger, gate)
                if said["ask"] == "approve":
                    ledger = approve(ledger, gate, by="user:7")
                else:
                    given = "b" if "choices" in said else {"place": places.pop(0), "days": 1}
                    ledger = answer(ledger, gate, by="user:7", answer=given)
        assert problems_of(ledger) == []
        return ledger

    count = CrashPoint(0)
    undisturbed = await all_of_it(count)
    assert value_of(undisturbed) == [{"place": "Rome", "days": 1}, "b", True]
    assert count.count == 6
    for n in range(1, count.count + 1):
        crashed = await all_of_it(CrashPoint(n, after))
        without = [[(s.path, s.type, s.payload) for s in each if s.type != "note"] for each in (crashed, undisturbed)]
        assert without[0] == without[1], n


@pytest.mark.parametrize(("decided", "told"), [
    ("expired", "expired: Nobody answered in time."),
    ("cancelled", "cancelled: The question was closed before anybody answered it."),
])  # fmt: skip
@pytest.mark.parametrize("again", [False, True])
async def test_nobody_answers(decided: str, told: str, again: bool) -> None:
    """The policy gets the reason as the code of a ToolError, also where the question was asked again."""
    plan = asks(changed(lambda place: False)) if again else asks("Which one?")
    ledger, gate = await play(plan), "1"
    if again:
        ledger = await play(plan, answer(ledger, "1", by="user:7", answer={"place": "Rome", "days": 1}))
        gate = "1/card1"
    assert value_of(await play(plan, decide(ledger, gate, decided, by="system"))) == told


async def test_an_approval_is_yes_or_no() -> None:
    """It is shown with its title and its details; nobody in time is neither."""

    async def plan(action: Action, ctx: Context) -> list[Step]:
        return ctx.done(await ctx.approve("Send the letter?", "To all 40 customers."))

    ledger = await play(plan)
    said = asked(ledger)
    assert (said["ask"], said["reason"], said["details"]) == ("approve", "Send the letter?", "To all 40 customers.")
    assert said["digest"]
    assert value_of(await play(plan, approve(ledger, "1", by="user:7"))) is True
    assert value_of(await play(plan, reject(ledger, "1", by="user:7"))) is False
    with pytest.raises(ValueError, match="no input that could be edited"):
        approve(ledger, "1", by="user:7", input={"a": 1})
    late = await play(plan, decide(ledger, "1", "expired", by="system"))
    assert (end_of(late) or {})["code"] == "expired"


@pytest.mark.parametrize(
    "asking", [lambda ctx: ctx.ask("Sure?", who="another"), lambda ctx: ctx.approve("Sure?", who="another")]
)
async def test_somebody_else_must_answer(asking: Any) -> None:
    """Not whoever asked for the turn (C13)."""

    async def plan(action: Action, ctx: Context) -> list[Step]:
        return ctx.done(await asking(ctx))

    ledger = await play(plan)
    assert asked(ledger)["who"] == "another"

    def decides(by: str) -> Ledger:
        return (
            approve(ledger, "1", by=by)
            if asked(ledger)["ask"] == "approve"
            else answer(ledger, "1", by=by, answer="yes")
        )

    with pytest.raises(ValueError, match="somebody other than 'user:1'"):
        decides("user:1")
    assert value_of(await play(plan, decides("user:7"))) in ("yes", True)


class Listed(RootModel[list[int]]):
    """A list."""


@pytest.mark.parametrize(
    ("given", "error", "why"),
    [
        (lambda ctx: ctx.ask(""), TypeError, "a question is a text, or a form"),
        (lambda ctx: ctx.ask(7), TypeError, "a question is a text, or a form"),
        (lambda ctx: ctx.ask(Listed), TypeError, "a form has fields"),
        (lambda ctx: ctx.ask(Trip, choices=["a"]), TypeError, "no choices besides"),
        (lambda ctx: ctx.ask("Which?", choices=[]), ValueError, "a list of texts"),
        (lambda ctx: ctx.ask("Which?", choices=["a", ""]), ValueError, "a list of texts"),
        (lambda ctx: ctx.ask("Which?", who="me"), ValueError, "'another', or left out"),
        (lambda ctx: ctx.ask("Which?", hours=0), ValueError, "more than 0 hours"),
        (lambda ctx: ctx.approve(" "), TypeError, "a title and details"),
        (lambda ctx: ctx.approve("Go?", details=1), TypeError, "a title and details"),
    ],
)
async def test_what_is_no_question_is_refused_at_once(given: Any, error: type[Exception], why: str) -> None:
    """And takes no place in the ledger."""

    async def plan(action: Action, ctx: Context) -> list[Step]:
        with pytest.raises(error, match=why):
            given(ctx)
        return ctx.done()

    assert len(await play(plan)) == 2


@pytest.mark.parametrize(
    "payload",
    [{}, {"question": " "}, {"question": "Which?", "choices": "ab"}, {"question": "Which?", "schema": "object"},
     {"ask": "interrupted", "question": "Did it?"}],
)  # fmt: skip
async def test_the_long_way_checks_what_it_asks(payload: dict[str, JSON]) -> None:
    """A question that nobody could be shown ends with an error, and waits for nobody."""

    async def plan(action: Action, ctx: Context) -> list[Step]:
        return ctx.done((await ctx.call(Action("human", payload)))[-1].payload["code"])

    assert value_of(await play(plan)) == "invalid_input"


async def test_a_question_that_is_open_stays_as_it_was_asked() -> None:
    """A new version changes neither its words nor its time; its answer is judged by the new one."""
    ledger = await play(asks("Which one?", choices=["red", "blue"], hours=1))
    plan = asks("Which colour?", choices=["red", "green"], hours=5)
    assert asked(await play(plan, ledger)) == asked(ledger)
    ledger = await play(plan, answer(ledger, "1", by="user:7", answer="blue"))
    again = asked(ledger, "1/card1")
    assert (again["question"], again["problems"]) == ("Which colour?", {"": ["Choose one of: red, green."]})
    assert value_of(await play(plan, answer(ledger, "1", by="user:7", answer="green"))) == "green"


async def test_an_approval_is_of_what_was_shown() -> None:
    """A policy that is run again with other words asks again: what was approved was something else."""
    said, done = ["file 1"], list[str]()

    async def plan(action: Action, ctx: Context) -> list[Step]:
        if await ctx.approve("Delete it?", details=said[0]):
            done.append(said[0])
        await ctx.ask("Next?")
        return ctx.done()

    waiting = await play(plan)
    said[0] = "file 2"
    again = await play(plan, approve(waiting, "1", by="user:7"))
    assert done == []
    assert asked(again, "1/card1")["details"] == "file 2"
    assert open_gates(again) == ["1/card1"]
    approved = await play(plan, approve(again, "1", by="user:7"))
    assert done == ["file 2"]
    said[0] = "file 3"  # what was taken is not judged again
    final = await play(plan, answer(approved, "2", by="user:7", answer="No."))
    assert (end_of(final) or {})["state"] == "completed"
    assert problems_of(final) == []


async def test_an_approval_that_is_never_of_the_same_ends() -> None:
    numbers = iter(range(100))

    async def plan(action: Action, ctx: Context) -> list[Step]:
        try:
            await ctx.approve("Delete it?", details=f"file {next(numbers)}")
        except ToolError as error:
            return ctx.done([error.code, error.message])
        return ctx.done("approved")

    ledger = await play(plan)
    for _ in range(4):
        ledger = await play(plan, approve(ledger, "1", by="user:7"))
    words = "The question to the person changed each time, so nothing was done."
    assert value_of(ledger) == ["changed_since", words]


async def test_an_answer_is_to_the_question_that_was_asked() -> None:
    words = ["Which colour?"]

    async def plan(action: Action, ctx: Context) -> list[Step]:
        return ctx.done(await ctx.ask(words[0]))

    waiting = await play(plan)
    words[0] = "How many?"
    again = await play(plan, answer(waiting, "1", by="user:7", answer="red"))
    problem = {"": ["The question has changed since this was answered."]}
    assert (asked(again, "1/card1")["draft"], asked(again, "1/card1")["problems"]) == ("red", problem)
    assert value_of(await play(plan, answer(again, "1", by="user:7", answer="3"))) == "3"


async def test_a_choice_with_a_secret_of_the_site_is_asked_once() -> None:
    """It is shown without it, and the answer is what was shown."""
    keep_secret(["hunter2hunter2"])
    try:

        async def plan(action: Action, ctx: Context) -> list[Step]:
            return ctx.done(await ctx.ask("Which is hunter2hunter2?", choices=["hunter2hunter2", "none"]))

        ledger = await play(plan)
        assert "hunter2" not in str(ledger)
        ledger = await play(plan, answer(ledger, "1", by="user:1", answer="[secret]"))
        end = View(ledger).result("")
        assert end
        assert end.value == "[secret]"

        class Which(BaseModel):
            """Which one?"""

            name: Literal["hunter2hunter2", "none"]

        async def form(action: Action, ctx: Context) -> list[Step]:
            return ctx.done(str(await ctx.ask(Which)))

        with pytest.raises(ValueError, match="none of the site's secrets"):
            await play(form)
    finally:
        keep_secret([])
