"""The checker of the crash matrix works: everything that is broken in a good run is reported by its rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from django.db import connections, transaction
from pytest_django import DjangoDbBlocker

from agents.plugins.memory import keeping
from conversations.models import Draft, Prompt
from tests.conversations.recorded import meddle
from tests.crash.acting import MARKS, ended
from tests.crash.checks import Killed, Undisturbed, recorded, told, violations
from tests.crash.conftest import MakeSource
from tests.crash.model import serving
from tests.crash.scenarios import S99, Scenario
from tests.crash.site import Site, fresh
from tests.crash.workers import Whole
from tests.guarding import remove_guard

pytestmark = MARKS


@dataclass(frozen=True)
class Ran:
    """A turn at which nothing was broken."""

    site: Site
    prompt: Prompt
    usual: Undisturbed

    def told(self, scenario: Scenario = S99, card: str = "") -> list[str]:
        """What the checker says. `card`: the path of a call that a person was asked about."""
        killed = Killed("before_effect", "kill", {card: ["it_did_not"]} if card else {})
        return violations(self.site, self.prompt, scenario, self.usual, killed)

    def meddle(self, sql: str, path: str, kind: str) -> None:
        """Change this step by hand."""
        assert meddle(f"{sql} WHERE path = %s AND type = %s", [path, kind])


@pytest.fixture(scope="module")
def whole(
    tmp_path_factory: pytest.TempPathFactory, sources: MakeSource, django_db_blocker: DjangoDbBlocker
) -> Iterator[Ran]:
    folder, before = tmp_path_factory.mktemp("ran"), connections.settings["default"]
    with django_db_blocker.unblock(), serving({"*": S99.rounds}, folder, "model") as model:
        try:
            with fresh("ran", folder, sources("sqlite"), model) as site:
                worker = Whole(site)
                try:
                    prompt = ended(site, site.say())
                finally:
                    worker.stop()
                yield Ran(site, prompt, Undisturbed(recorded(prompt, site), prompt.fence, [], told(site)))
        finally:
            connections["default"].close()
            connections.settings["default"] = before
            del connections["default"]


@pytest.fixture
def ran(whole: Ran) -> Iterator[Ran]:
    """The same for each test: what it breaks is whole again after it."""
    with transaction.atomic():
        remove_guard()
        yield whole
        transaction.set_rollback(True)


def test_a_good_run_is_good(ran: Ran) -> None:
    assert ran.told() == []
    assert ran.told(card="1/0") == []


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("state", "failed", "ended 1 times, as failed (text)"),
        ("stop_reason", "limit", "ended 1 times, as completed (limit)"),
        ("lease_until", 1, "lease or slot are still taken"),
        ("rounds", 2, "2 rounds in the ledger, [1, 2, 3] asked for"),
        ("input_tokens", 40, "input_tokens: 30 were used, the prompt says 40, its end 30"),
        ("output_tokens", 0, "output_tokens: 15 were used, the prompt says 0, its end 15"),
    ],
)
def test_a_turn_that_ended_otherwise_is_told(ran: Ran, column: str, value: object, says: str) -> None:
    meddle(f"UPDATE conversations_prompt SET {column} = %s", [value])
    assert says in ran.told()


def test_a_slot_or_text_that_is_left_is_told(ran: Ran) -> None:
    meddle("UPDATE conversations_conversation SET active_prompt_id = %s", [ran.prompt.pk])
    mine = {"prompt": ran.prompt, "conversation": ran.prompt.conversation, "fence": ran.prompt.fence}
    Draft.objects.create(**mine, path="1", attempt=1, text="Half a", size=6)
    assert {"lease or slot are still taken", "text on its way is left behind"} <= set(ran.told())


@pytest.mark.parametrize(
    ("effects", "says"),
    [
        ({"1/0": 2, "2/0": 1}, "1/0 was done 2 times, agreed to 1 times"),
        ({"1/0": 1}, "2/0 was never done"),
    ],
)
def test_an_effect_too_many_or_none_is_told(
    ran: Ran, effects: dict[str, int], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I3."""
    monkeypatch.setattr(ran.site, "effects", lambda: Counter(effects))
    assert ran.told() == [says]


def test_an_effect_that_was_refused_is_told(ran: Ran) -> None:
    assert ran.told(replace(S99, never=("2/0",))) == ["2/0 was refused, and done 1 times"]


def test_a_question_too_many_is_told(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    """I4."""
    asked = ran.site.asked()
    monkeypatch.setattr(ran.site, "asked", lambda: [asked[0], *asked])
    assert ran.told() == ["the model was asked {1: 2, 2: 1, 3: 1}, 1 too often"]


@pytest.mark.parametrize(("part", "value"), [("instructions", "Obey."), ("tools", [])])
def test_a_round_that_was_told_something_else_is_told(
    ran: Ran, part: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ran.site.asked()
    asked[1][part] = value
    monkeypatch.setattr(ran.site, "asked", lambda: asked)
    assert any(each.startswith("round 2 was told something else: ") for each in ran.told())


def test_a_memory_that_is_missing_or_too_many_is_told(ran: Ran) -> None:
    assert ran.told(replace(S99, kept=("Tea.",))) == ["kept in the end: []; found: []"]
    keeping.save(ran.site.person().pk, "Tea.")
    assert ran.told(replace(S99, kept=("Tea.",))) == []
    assert ran.told(replace(S99, memories=("Tea.",))) == ["kept in the end: ['Tea.']; found: ['Tea.']"]


def test_a_history_that_no_provider_takes_is_told(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    """I10: a call without its result."""
    asked = ran.site.asked()
    asked[1]["input"] = [item for item in asked[1]["input"] if item.get("type") != "function_call_output"]
    monkeypatch.setattr(ran.site, "asked", lambda: asked)
    assert any(each.startswith("the API would refuse a request") for each in ran.told())


Break = Callable[[Ran], object]
DELETE, UPDATE = "DELETE FROM conversations_step", "UPDATE conversations_step SET"


@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        (lambda ran: ran.meddle(f"{UPDATE} actor = 'user:7'", "1", "text"), "the chain is broken"),
        (lambda ran: ran.meddle(DELETE, "1", "text"), "there is a gap"),
        (lambda ran: ran.meddle(DELETE, "1", "action_start"), "the answer at 1 has no start"),
        (lambda ran: ran.meddle(DELETE, "1/0/human", "action_result"), "1/0 was started without the approval it needs"),
        (
            lambda ran: meddle(f"{DELETE} WHERE path = '2/0/human'"),
            "2/0 was started without the approval it needs",
        ),
        (
            lambda ran: meddle(f"{UPDATE} payload = replace(payload, 'approve', 'reject') WHERE path = '2/0/human'"),
            "2/0 was started without the approval it needs",
        ),
        (
            lambda ran: ran.meddle(f"{UPDATE} seq = 1000", "2/0/human", "action_result"),
            "2/0 was started without the approval it needs",
        ),
        (lambda ran: ran.meddle(DELETE, "", "action_result"), "ended 0 times"),
        (
            lambda ran: ran.meddle(f"{UPDATE} payload = replace(payload, 'usage', 'used')", "", "action_result"),
            "input_tokens: 30 were used, the prompt says 30, its end None",
        ),
        (lambda ran: ran.meddle(f"{UPDATE} payload = '{{}}'", "3", "text"), "the ledger differs: "),
        (lambda ran: ran.meddle(f"{UPDATE} seq = 1000", "1", "text"), "the ledger differs: "),
        (lambda ran: meddle("UPDATE conversations_output SET parent = 'x'"), "the output differs from its steps"),
    ],
)
def test_a_step_that_is_not_as_it_was_is_told(ran: Ran, breaks: Break, says: str) -> None:
    """I1, I3: the chain, starts and approvals, the end, and every line as in a run that nothing disturbed."""
    breaks(ran)
    told = ran.told()
    assert any(says in each for each in told), told
