"""A long conversation: a turn reads as much of it as there is room for, and its model sees what it always saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from agents.engine.interfaces.messages import ResultMessage
from agents.engine.interfaces.services import EncodedTurn, PastTurn
from agents.engine.limits import Limits
from agents.engine.outputs.kinds import Output, Success, TextOutput, ToolOutput
from tests.engine.cast import site
from tests.engine.support import ScriptedProvider, Site, carry_on, says, seen


@dataclass
class Counted(Site):
    """A site that notes how many earlier turns were read."""

    read: list[int] = field(default_factory=list)

    async def history(self, most: int | None = None, skip: int = 0, encoding: str = "") -> Sequence[PastTurn]:
        found = await super().history(most, skip, encoding)
        self.read.append(len(found))
        return found


class Whole(Site):
    """A site that gives all of its history at once, however much is asked for."""

    async def history(self, most: int | None = None, skip: int = 0, encoding: str = "") -> Sequence[PastTurn]:
        return () if skip else self.past


def past_turn(number: int, said: str | None, calls: Sequence[tuple[str, int]], words: int) -> PastTurn:
    """An earlier turn: what was said, its calls by their ids with the lengths of their results, and the answer."""
    outputs: list[Output] = [
        ToolOutput(path=f"1/{n}", position=n, tool="fx.read", call_id=id, result=Success(output="r" * length))
        for n, (id, length) in enumerate(calls)
    ]
    if words:
        outputs.append(TextOutput(path="2", position=90, text="word " * words))
    return PastTurn(number, said, outputs)


turns = st.builds(
    lambda drawn: [
        past_turn(n, said, [(f"call_{n}_{m}", length) for m, length in enumerate(lengths)], words)
        for n, (said, lengths, words) in enumerate(drawn, 1)
    ],
    st.lists(
        st.tuples(
            st.none() | st.text(max_size=30),
            st.lists(st.integers(0, 900), max_size=3),
            st.sampled_from([0, 1, 10, 200]),
        ),
        max_size=70,
    ),
)


async def _sent(services: Site, tokens: int, *, needs_user: bool = False) -> list[bytes]:
    provider = ScriptedProvider(lambda _: says("Yes."))
    provider.needs_user = needs_user
    await carry_on(site(provider)[0], services=services, limits=Limits(history_tokens=tokens))
    return list(provider.asked[0].history)


@given(turns, st.sampled_from([1, 100, 1000, 5000, 100_000]), st.booleans())
async def test_the_model_sees_the_same_bytes_as_if_all_were_read(
    past: list[PastTurn], tokens: int, needs_user: bool
) -> None:
    read = await _sent(Site(past=past, prompt=99), tokens, needs_user=needs_user)
    assert read == await _sent(Whole(past=past, prompt=99), tokens, needs_user=needs_user)


async def test_of_a_thousand_turns_it_reads_those_it_has_room_for() -> None:
    past = [past_turn(n, f"question {n}", [], 20) for n in range(1000)]
    services = Counted(past=past)
    sent = await _sent(services, 1000)
    assert 16 < len(sent) < 32
    assert sum(services.read) < 64


async def test_call_ids_are_unique_in_what_is_sent() -> None:
    """Also where a server gives the same id in every turn, and the first to have it is no longer read."""
    past = [past_turn(n, "go", [("call_1", 300)], 0) for n in range(1000)]
    provider = ScriptedProvider(lambda _: says("Yes."))
    await carry_on(site(provider)[0], services=Site(past=past), limits=Limits(history_tokens=1000))
    ids = [message.call_id for message in seen(provider.asked[0]) if isinstance(message, ResultMessage)]
    assert len(ids) == len(set(ids)) > 5


async def test_a_conversation_with_room_left_is_read_whole_and_once() -> None:
    past = [past_turn(n, "go", [("call_1", 3)], 1) for n in range(40)]
    services = Counted(past=past)
    assert len(await _sent(services, 100_000)) == 41
    assert services.read == [16, 24]


@dataclass
class Keeping(Site):
    """A site that keeps what turns encode to, and then gives nothing else of them."""

    kept: dict[tuple[int, str], EncodedTurn] = field(default_factory=dict)
    read: list[int] = field(default_factory=list)

    async def history(self, most: int | None = None, skip: int = 0, encoding: str = "") -> Sequence[PastTurn]:
        return [self._known(past, encoding) for past in await super().history(most, skip)]

    def _known(self, past: PastTurn, encoding: str) -> PastTurn:
        place = past.prompt, encoding
        if place in self.kept:
            past = PastTurn(past.prompt, None, (), encoded=self.kept[place])
        else:
            self.read.append(past.prompt)
        return replace(past, keep=partial(self.kept.__setitem__, place))


def _with_ids(past: PastTurn, number: int) -> PastTurn:
    """The turn with ids of calls that repeat after so many turns."""

    def changed(entry: Output) -> Output:
        if not isinstance(entry, ToolOutput):
            return entry
        return entry.model_copy(update={"call_id": f"call_{entry.position + past.prompt % number}"})

    return replace(past, outputs=[changed(entry) for entry in past.outputs])


@given(turns, st.sampled_from([1, 100, 1000, 100_000]), st.booleans(), st.sampled_from([1, 3, 1000]))
async def test_with_what_was_kept_the_model_sees_the_same(
    past: list[PastTurn], tokens: int, needs_user: bool, ids: int
) -> None:
    """Also where a server gives the same ids again and again, and as the conversation grows."""
    past = [_with_ids(turn, ids) for turn in past]
    services = Keeping(prompt=99)
    for number in (len(past) // 3, len(past) // 2, max(len(past) - 1, 0), len(past)):
        services.past = past[:number]
        sent = await _sent(services, tokens, needs_user=needs_user)
        assert sent == await _sent(Whole(past=services.past, prompt=99), tokens, needs_user=needs_user)


async def test_a_turn_reads_only_what_is_new() -> None:
    """Once it was sent; but all of it again for another way of encoding."""
    services = Keeping(past=[past_turn(n, "go", [("call_1", 3)], 1) for n in range(40)])
    await _sent(services, 100_000)
    assert sorted(services.read) == list(range(40))
    services.past.append(past_turn(40, "go", [("call_1", 3)], 1))
    services.read.clear()
    assert len(await _sent(services, 100_000)) == 42
    assert services.read == [40]
    services.read.clear()
    await _sent(services, 100_000, needs_user=True)
    assert sorted(services.read) == list(range(41))
