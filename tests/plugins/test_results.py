"""`results.read`: the rest of what a model was shown only in part (S77)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel

from agents.engine.agent.projection import whole_text
from agents.engine.errors import ToolError
from agents.engine.interfaces.journal import MemoryJournal
from agents.engine.interfaces.services import PlainServices
from agents.engine.limits import Limits
from agents.engine.outputs.timeline import Outputs
from agents.engine.runtime.run import Run
from agents.engine.schema import parse
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.results.tools import PAGE_MOST, read_on
from tests.engine.cast import site
from tests.engine.support import call, results_in, says


@dataclass
class Kept(PlainServices):
    """Results by the names that a model reads."""

    results: dict[tuple[int, str], str] = field(default_factory=dict)

    async def result_of(self, prompt: int, path: str) -> str:
        try:
            return self.results[prompt, path]
        except KeyError:
            raise ToolError("There is no such result.", code="not_found") from None


TEXT = "".join(f"line {n} äöü 💡\n" for n in range(4000))


async def page(**asked: Any) -> str:
    """What the model reads of one page."""
    given: ToolCall[Any] = ToolCall(
        read_on.name, parse(read_on.input, asked), user=1, services=Kept(results={(7, "1/0"): TEXT}), path="2/0"
    )
    answer = await read_on.function(given)
    assert isinstance(answer, str)
    return answer


@pytest.mark.parametrize("characters", [1000, 15_999, PAGE_MOST])
async def test_page_by_page_it_is_the_whole_text(characters: int) -> None:
    """Each page says where it ends and how much there is; the last one, that it is the last."""
    whole, offset = "", 0
    while True:
        head, _, content = (await page(result="7:1/0", offset=offset, characters=characters)).partition("\n")
        assert len(content) <= characters
        whole += content
        told = re.fullmatch(
            r"\[Characters (\d+) to (\d+) of (\d+); (the next offset is (\d+)|that is its end)\.\]", head
        )
        assert told, head
        assert (int(told[1]), int(told[2]), int(told[3])) == (offset, len(whole), len(TEXT))
        if not told[5]:
            break
        offset = int(told[5])
    assert whole == TEXT


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"result": "8:1/0"}, "not_found"),
        ({"result": "7:1/1"}, "not_found"),
        ({"result": "7:1/0", "offset": len(TEXT)}, "past_the_end"),
    ],
)
async def test_what_is_not_there_is_an_error(asked: dict[str, Any], code: str) -> None:
    with pytest.raises(ToolError) as caught:
        await page(**asked)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "asked",
    [
        {"result": "1/0"},
        {"result": "x:1/0"},
        {"result": "9" * 19 + ":1"},
        {"result": "7:"},
        {"result": "7:1/0", "offset": -1},
        {"result": "7:1/0", "characters": PAGE_MOST + 1},
        {"result": "7:1/0", "characters": 0},
        {},
    ],
)
def test_what_makes_no_sense_is_refused(asked: dict[str, Any]) -> None:
    """Before it is run, as any input."""
    assert read_on.problem(asked)


def test_it_only_reads() -> None:
    """So nobody is asked about it (S83)."""
    assert (read_on.risk, read_on.approval, read_on.idempotent) == (Risk.READ, False, True)


class Nothing(BaseModel):
    """Takes nothing."""


@pytest.mark.parametrize("fails", [False, True])
async def test_a_model_reads_all_of_what_was_cut_by_what_the_cut_says(fails: bool) -> None:
    """Both a long output and a long error: it calls what it is told to, page by page (S77).

    Of a page that is longer than what a model is shown of any result, it is shown a shorter one.
    """

    @tool("long", risk=Risk.READ)
    async def long(call: ToolCall[Nothing]) -> str:
        """Return much."""
        if fails:
            raise ToolError(TEXT, code="much")
        return TEXT

    def script(request: Any) -> Any:
        results = results_in(request)
        if not results:
            return says("", call("long"))
        told = re.search(r'truncated: .* to (\d+); results_read with {"result": "(.+)", "offset": (\d+)}', results[0])
        on = re.match(r"\[Characters .*; the next offset is (\d+)\.\]", results[-1]) if len(results) > 1 else None
        assert told
        offset, until = int(on[1] if on else told[3]), int(told[1])
        if offset == until:
            return says("Done.")
        return says("", call("results.read", result=told[2], offset=offset, characters=min(PAGE_MOST, until - offset)))

    registry, provider = site(script, [long, read_on], rounds=20)
    services, journal = Kept(prompt=7), MemoryJournal()

    async def result_of(prompt: int, path: str) -> str:
        entry = Outputs(journal.ledger).entry(path)
        assert entry
        assert prompt == 7
        return whole_text(entry) or ""

    services.result_of = result_of  # type: ignore[method-assign]
    await Run(registry, journal, services, limits=Limits(result_characters=6000)).run_turn("agent", {"text": "go"})
    first, *pages = results_in(provider.asked[-1])
    head, tail = re.split(r"\n\[\.\.\. truncated: .* \.\.\.\]\n", first)
    read = "".join(each.partition("\n")[2] for each in pages)
    assert head.removeprefix("Error (much): ") + read + tail == TEXT
    assert max(len(each.partition("\n")[2]) for each in pages) == 6000
