"""How turns end that a limit, the model or its own last call ends: in the database, and by the ledger's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from agents.engine.errors import ProviderError, ToolError
from agents.engine.interfaces.provider import Answer
from agents.engine.interfaces.services import Space
from agents.engine.limits import Limits
from agents.engine.outputs.kinds import TextOutput
from agents.engine.tools.tool import ToolCall
from conversations.ledger.claims import Claim
from conversations.models import Output, Prompt, Usage
from conversations.prompts.limits import limits
from conversations.prompts.start import continue_prompt
from conversations.verification.rules import problems_of
from conversations.verification.stored import verify
from conversations.worker.drafts import Drafts
from conversations.worker.services import PromptServices
from tests.conversations.recorded import Site, in_this_thread, taken
from tests.engine.cast import World
from tests.engine.cast import site as registered
from tests.engine.support import call, decide, end_of, garbled, last, open_gates, says
from tests.engine.support import carry_on as turn

pytestmark = pytest.mark.django_db

BAD = garbled('{"tool"')
BUSY = ProviderError("Busy.", code="server_error", retryable=True, wait_seconds=0)
TURNS: list[Sequence[Any]] = [
    [says("", last("fx.read", a=1))],
    [says("", call("fx.read", a=1), last("shell.run", command="a"), call("touch", name="t"))],
    [says("", last("fx.read", b=1)), says("Sorry.")],
    [BAD, says("", call("fx.read", a=1)), BAD, says("Done.")],
    [BAD, BAD, BAD],
    [[BUSY]],
    [[BUSY, BUSY, BUSY, BUSY, says("By another.")]],
    [[ProviderError("Too long.", code="context_overflow")]],
]


@pytest.mark.parametrize("script", TURNS)
async def test_whatever_ends_a_turn_its_ledger_keeps_the_rules(script: Sequence[Any]) -> None:
    """At every prefix (I1, T-18: nothing starts before it is approved)."""
    registry, _ = registered(list(script), World().tools())
    limits = Limits(fallback=True)
    ledger = await turn(registry, limits=limits)
    while not end_of(ledger):
        for path in open_gates(ledger):
            ledger = decide(ledger, path)
        ledger = await turn(registry, ledger, limits=limits)
    for cut in range(len(ledger) + 1):
        assert problems_of(ledger[:cut]) == []


def stored(prompt: Prompt) -> list[str]:
    return [str(problem) for problem in verify(prompt.conversation_id).problems]


def last_words(prompt: Prompt) -> str:
    entry = Output.objects.filter(prompt=prompt).order_by("position").last()
    assert entry
    output = entry.entry()
    assert isinstance(output, TextOutput)
    return output.text


@pytest.mark.parametrize(
    ("script", "ended", "answers"),
    [
        ([says("", last("fx.read", a=1))], ("completed", "terminate"), 1),
        ([BAD, says("", call("fx.read", a=1)), says("Done.")], ("completed", "text"), 3),
        ([BAD, BAD, BAD], ("failed", "parse_failures"), 3),
    ],
)
def test_the_row_says_how_it_ended_and_every_answer_is_counted(
    ann: User, site: Site, script: list[Answer], ended: tuple[str, str], answers: int
) -> None:
    """Also of answers that could not be read (S39, R2, R12)."""
    prompt = site.runs(ann, *script)
    assert (prompt.state, prompt.stop_reason) == ended
    assert (prompt.rounds, prompt.input_tokens) == (answers, 10 * answers)
    assert Usage.objects.filter(prompt_id=prompt.pk).count() == answers
    assert stored(prompt) == []


def test_a_quota_that_runs_out_in_the_middle_fails_the_turn_and_a_higher_one_goes_on(
    ann: User, site: Site, settings: Any
) -> None:
    """The sentence is its last text, all is kept, and Continue takes it up (C19, R5)."""
    settings.AGENTSITE_TOKENS_A_DAY = 15
    prompt = site.runs(ann, says("I look.", call("touch", name="a")), *[says("Done.")] * 2)
    assert (prompt.state, prompt.stop_reason) == ("failed", "quota")
    assert last_words(prompt).startswith("15 tokens were used")
    assert site.world.done == [("touch", "a")]
    settings.AGENTSITE_TOKENS_A_DAY = 0
    more = continue_prompt(prompt.pk, ann)
    site.works()
    more.refresh_from_db()
    assert (more.state, site.world.done) == ("completed", [("touch", "a")])
    assert stored(prompt) == []


def test_what_cannot_be_read_three_times_or_more_is_a_setting(ann: User, site: Site, settings: Any) -> None:
    """AGENTSITE_PARSE_FAILURES (R3)."""
    settings.AGENTSITE_PARSE_FAILURES = 2
    prompt = site.runs(ann, BAD, BAD, says("Never asked."))
    assert (prompt.stop_reason, prompt.rounds) == ("parse_failures", 2)


def test_the_fallback_is_asked_where_the_settings_name_one(settings: Any) -> None:
    settings.AGENTSITE_MODEL_FALLBACK = ""
    assert not limits().fallback
    settings.AGENTSITE_MODEL_FALLBACK = "small"
    assert limits().fallback


# Results that are read on (S77)


def services_of(prompt: Prompt) -> PromptServices:
    """The outside as a turn of this prompt sees it."""
    drafts = Drafts(in_this_thread).of(taken(prompt))
    read = Prompt.objects.select_related("conversation").get(pk=prompt.pk)
    return PromptServices(read, Space(), in_this_thread, drafts, lambda: True)


def refused(prompt: Prompt, of: int, path: str) -> str:
    with pytest.raises(ToolError) as caught:
        async_to_sync(services_of(prompt).result_of)(of, path)
    return caught.value.code


@pytest.fixture
def long_ago(ann: User, site: Site) -> Prompt:
    """A turn with a long output, a long error, and a call that nobody approved."""

    def fails(_: ToolCall[Any]) -> None:
        raise ToolError("b" * 50_000)

    site.world.at["fx.read"] = fails
    batch = says("", call("shell.run", command="a" * 40_000), call("fx.read", a=1))
    return site.ended(ann, batch, says("Done."))


def test_results_of_earlier_turns_are_read_whole(ann: User, site: Site, long_ago: Prompt) -> None:
    """As the model reads them, errors too (S77)."""
    here = site.starts(ann, says("Done."), conversation=long_ago.conversation)
    services = services_of(here)
    read = async_to_sync(services.result_of)
    assert read(long_ago.pk, "1/0") == f"did {'a' * 40_000}\nexit: 0 (1.2s)"
    assert read(long_ago.pk, "1/1") == "b" * 50_000


@pytest.mark.parametrize("path", ["1", "", "1/2", "1/0/human", "9/9"])
def test_what_is_no_result_is_not_there(ann: User, site: Site, long_ago: Prompt, path: str) -> None:
    here = site.starts(ann, says("Done."), conversation=long_ago.conversation)
    assert refused(here, long_ago.pk, path) == "not_found"


def test_results_of_other_conversations_are_not_there(ann: User, bob: User, site: Site, long_ago: Prompt) -> None:
    """Neither another person's nor one's own of elsewhere (I11, T-49)."""
    for owner in (ann, bob):
        assert refused(site.starts(owner, says("Done.")), long_ago.pk, "1/0") == "not_found"


def test_a_call_that_waits_has_no_result_yet(ann: User, site: Site) -> None:
    waiting = site.runs(ann, says("", call("shell.run", command="ls")))
    services = PromptServices(
        waiting,
        Space(),
        in_this_thread,
        Drafts(in_this_thread).of(Claim(waiting.conversation_id, waiting.pk, 1, 0)),
        lambda: True,
    )
    with pytest.raises(ToolError):
        async_to_sync(services.result_of)(waiting.pk, "1/0")
