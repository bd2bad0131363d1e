"""Which tools the rounds of a turn are offered: one choice, then additions, over pauses, crashes and changes."""

from __future__ import annotations

from typing import Any

import pytest

from agents import Action, Context, Plugin, Round, Step, policy
from agents.engine import PolicyRegistry
from agents.engine.agent.model import model
from agents.engine.agent.turn import agent
from agents.engine.errors import RegistryError
from agents.engine.execution.effect import as_policy
from agents.engine.interfaces.provider import Request
from agents.engine.interfaces.services import PastTurn, PlainServices
from agents.engine.ledger import JSON, Ledger
from agents.engine.limits import Limits
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.tool import Tool, by_category
from agents.engine.view import View
from agents.plugins.tools.choice import FOR_ROOM
from agents.plugins.tools.plugin import NOT_OFFERED, Tools
from agents.plugins.tools.tools import find
from tests.engine.cast import site
from tests.engine.journals import CrashPoint
from tests.engine.sound import problems
from tests.engine.support import (
    ScriptedProvider,
    Site,
    call,
    carry_on,
    decide,
    end_of,
    play,
    results_in,
    says,
    seen,
)
from tests.plugins.many_tools import GARDEN, made, numbered, tokens

GATED = made("yard.open", "Open the yard", gate=True)
PUSHED = made("rose.cut", "Cut a rose", category=GARDEN, gate=True)
MANY = by_category([*numbered(30), GATED, find])
LIMITS = Limits(tool_tokens=tokens(numbered(12)))

FINDS = says("I look.", call("tools.find", words="open yard"))
OPENS = says("I open it.", call("yard.open", thing="it"))
SCRIPT = [FINDS, OPENS, says("Done.")]


def offered(request: Request) -> list[str]:
    return [tool.name for tool in request.tools]


def kept(ledger: Ledger) -> list[JSON]:
    """The recorded choices, in order."""
    return [s.payload["value"] for s in ledger if s.type == "state" and s.payload["plugin"] == "tools"]


class Pushing(Plugin):
    """Pushes a tool, until it is `over`."""

    name = "pushing"
    over = False

    async def prepare(self, round: Round) -> None:
        if not self.over:
            round.tools.append(PUSHED)


async def test_what_is_found_comes_last_and_the_record_has_the_choice() -> None:
    registry, provider = site(SCRIPT, MANY, [Tools()])
    waiting = await carry_on(registry, limits=LIMITS)
    first, second = (offered(request) for request in provider.asked)
    assert first[0] == "tools_find"
    assert "yard_open" not in first
    assert second == [*first, "yard_open"]
    chosen, wanted, added = kept(waiting)
    assert [*chosen["left_out"], *chosen["chosen"]].count("yard.open") == 1
    assert len(chosen["chosen"]) + len(chosen["left_out"]) == len(MANY)
    assert wanted["wanted"] == ["yard.open"]
    assert (added["added"], added["wanted"]) == (["yard.open"], [])
    done = await carry_on(registry, decide(waiting, "2/0/human"), limits=LIMITS)
    assert results_in(provider.asked[-1])[-1] == "yard.open did it"
    assert kept(done) == kept(waiting), "nothing changed since"


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_anywhere_changes_no_choice(after: bool) -> None:
    """In a round that chooses, in one that adds, at an open yard: the requests and the record are the same."""

    def approved(ledger: Ledger, path: str) -> Ledger:
        return decide(ledger, path)

    registry, usual = site(SCRIPT, MANY, [Tools()])
    undisturbed = await play(registry, approved, limits=LIMITS)
    wanted = {(len(r.history), repr(r.tools)) for r in usual.asked}
    crashes = 0
    for n in range(1, 20):
        registry, provider = site(SCRIPT, MANY, [Tools()])
        point = CrashPoint(n, after)
        ledger = await play(registry, approved, crash=point, limits=LIMITS)
        assert {(len(r.history), repr(r.tools)) for r in provider.asked} == wanted, n
        assert kept(ledger) == kept(undisturbed), n
        assert (end_of(ledger) or {})["state"] == "completed"
        crashes += point.count >= n
    assert crashes >= 6


async def test_nothing_is_left_out_where_all_have_room_and_the_finder_is_not_offered() -> None:
    registry, provider = site([says("Hi.")], MANY, [Tools()])
    ledger = await carry_on(registry)
    assert offered(provider.asked[0]) == [t.name.replace(".", "_") for t in MANY if t is not find]
    assert kept(ledger)[0]["left_out"] == []


async def test_a_tool_that_was_added_since_stands_at_the_end() -> None:
    """In a site's next version, whose new tool would stand first in the fixed order."""
    registry, _ = site([says("Hi.")], MANY, [Tools()])
    states = {"tools": kept(await carry_on(registry))[0]}
    new = made("an.apple", category=GARDEN)
    registry, provider = site([says("Hi.")], by_category([*MANY, new]), [Tools()])
    await carry_on(registry, states=states)
    assert offered(provider.asked[0])[-1] == "an_apple"


async def test_an_answer_with_a_form_comes_and_goes_and_changes_no_choice() -> None:
    """Its tool stands last, whatever the limit; the next turn without a form is offered what there was before."""
    form = {"schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
    formed = [FINDS, says("", call("final_answer", a=1))]
    registry, provider = site(formed, MANY, [Tools()])
    before = kept(await carry_on(registry, payload={"text": "go", "form": form}, limits=LIMITS))[-1]
    first, second = (offered(request) for request in provider.asked)
    assert second == [*first[:-1], "yard_open", "final_answer"]
    assert "final_answer" not in str(before)
    registry, provider = site([says("Hi.")], MANY, [Tools()])
    assert kept(await carry_on(registry, states={"tools": before}, limits=LIMITS)) == []
    assert offered(provider.asked[0]) == second[:-1]
    registry, provider = site(formed[1:], MANY, [Tools()])
    await carry_on(registry, payload={"text": "go", "form": form}, limits=Limits(tool_tokens=1))
    assert offered(provider.asked[0]) == ["tools_find", "final_answer"]


async def test_after_a_turn_of_another_agent_the_words_choose_again() -> None:
    """One with other tools: nothing of its choice can stay, and what it takes away is on record."""
    script = [says("Hi.")]
    states = {"tools": kept(await carry_on(site(script, [made("other.one")], [Tools()])[0]))[0]}
    registry, provider = site(script, MANY, [Tools()])
    ledger = await carry_on(registry, payload={"text": "Open the yard."}, states=states, limits=LIMITS)
    names, (choice,) = offered(provider.asked[0]), kept(ledger)
    assert (names[0], "yard_open" in names) == ("tools_find", True)
    assert len(names) < len(MANY)
    assert choice["gone"] == {"other.one": NOT_OFFERED}
    assert not choice["added"]


async def test_an_answered_round_keeps_its_tools_for_the_call_that_waits() -> None:
    """Though the plugin no longer pushes its tool; the next round does without it, and says so."""
    pushing = Pushing()
    script = [says("", call("rose.cut", thing="it")), says("", call("work.000", thing="it")), says("Done.")]
    registry, provider = site(script, MANY, [pushing, Tools()])
    registry.register(PUSHED.name)(as_policy(PUSHED))
    waiting = await carry_on(registry, limits=LIMITS)
    assert "rose_cut" in offered(provider.asked[0])
    pushing.over = True
    smaller = Limits(tool_tokens=1)
    done = await carry_on(registry, decide(waiting, "1/0/human"), limits=smaller)
    assert results_in(provider.asked[-1]) == ["rose.cut did it", "work.000 did it"]
    assert "rose_cut" not in offered(provider.asked[1])
    assert [choice["gone"] for choice in kept(done)] == [{}, {"rose.cut": NOT_OFFERED}], "and the third changes nothing"
    assert not problems(seen(provider.asked[-1]))


async def test_a_call_of_a_tool_that_was_left_out_is_refused_also_after_a_restart() -> None:
    asked = says("", call("yard.open", thing="it"), call("work.000", thing="it"), call("rose.cut", thing="it"))
    registry, _ = site([asked, says("Done.")], MANY, [Tools()])
    registry.register(PUSHED.name)(as_policy(PUSHED))
    for n in range(1, 7):
        ledger = await play(registry, decide, crash=CrashPoint(n), limits=LIMITS)
        codes = [s.payload.get("code", "") for s in ledger if s.type == "action_result" and s.path.startswith("1/")]
        assert sorted(codes) == ["", "unknown_tool", "unknown_tool"]


async def test_a_turn_that_begins_makes_room_for_what_waited() -> None:
    registry, _ = site([says("Hi.")], MANY, [Tools()])
    ledger = await carry_on(registry, limits=LIMITS)
    state: Any = kept(ledger)[0] | {"wanted": kept(ledger)[0]["left_out"][:6]}
    used = await carry_on(site([says("", call("work.008", thing="x")), says("Done.")], numbered(9))[0], journal=None)
    services = Site(past=[PastTurn(1, "go", tuple(Outputs(used).in_order()))])
    registry, provider = site(lambda request: says("Hi."), MANY, [Tools()])
    again = await carry_on(registry, states={"tools": state}, limits=LIMITS, services=services)
    names, (choice,) = offered(provider.asked[0]), kept(again)
    assert [name.replace("_", ".") for name in names[-6:]] == state["wanted"]
    assert "work_008" in names
    assert set(choice["gone"].values()) == {FOR_ROOM}
    assert "work.008" not in choice["gone"]


async def test_an_agent_within_another_policy_has_what_its_caller_names_or_chooses_for_itself() -> None:
    """It keeps nothing with the conversation, and a tool by which it must answer is always there."""

    @policy("outer")
    async def outer(action: Action, ctx: Context) -> list[Step]:
        await ctx.agent("Open the yard.")
        await ctx.agent("go", tools=[tool.name for tool in MANY])
        return ctx.done("")

    provider = ScriptedProvider(lambda request: says("Hi."))
    registry = PolicyRegistry({"outer": outer})
    registry.register("model")(model(provider))
    registry.register("agent")(agent(tools=MANY, plugins=[Tools]))
    ledger = await carry_on(registry, policy="outer", payload={}, limits=LIMITS)
    chosen, named = (offered(request) for request in provider.asked)
    assert "yard_open" in chosen, "it matches the words"
    assert "tools_find" not in chosen
    assert len(chosen) < 15
    assert len(named) == len(MANY)
    assert kept(ledger) == []


async def test_two_tools_of_one_name_are_refused_as_ever() -> None:
    registry, _ = site([says("Hi.")], [*MANY, made("work.001")], [Tools()])
    with pytest.raises(RegistryError, match="share the name 'work_001'"):
        await carry_on(registry)


# A round outside a turn, and its parts


class Telling(Plugin):
    """Adds texts in all the ways in which a plugin may."""

    def __init__(self, name: str) -> None:
        self.__class__ = type(name, (Telling,), {"name": name})

    async def prepare(self, round: Round) -> None:
        round.context[1:1] = [f"{self.name} early", ""]
        round.context.append(f"{self.name} late")


def outside(tools: list[Tool], **more: Any) -> Round:
    return Round(1, "1", input=None, base="Base.", tools=tools, view=View(), services=PlainServices(), **more)


async def test_a_round_can_be_prepared_outside_a_turn_and_says_who_added_what() -> None:
    round = outside(MANY, limits=LIMITS)
    await round.prepare([Telling("one"), Telling("two"), Tools()])
    assert round.parts == [
        ("base", "Base."),
        ("two", "two early"),
        ("one", "one early\n\none late"),
        ("two", "two late"),
    ]
    assert "\n\n".join(text for _, text in round.parts) == round.system
    assert 0 < len(round.definitions) < len(MANY)
    assert round.definitions[0].category == "More tools"


async def test_without_the_plugin_there_is_no_limit() -> None:
    round = outside(MANY, limits=Limits(tool_tokens=1))
    await round.prepare([])
    assert [d.name for d in round.definitions] == [t.name.replace(".", "_") for t in MANY]
