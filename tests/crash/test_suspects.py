"""A turn that takes every worker down does not fail the turns beside it."""

from __future__ import annotations

from conversations.ledger.claims import STRIKES
from tests.crash.acting import MARKS, Start, ended
from tests.crash.site import Site

pytestmark = MARKS


def test_a_turn_that_kills_its_worker_fails_none_beside_it(site: Site, start: Start) -> None:
    """I2: three others ask a model that takes longer than the next crash does to come; they end well."""
    others = [site.say("think")]
    poison = site.say("die")
    others += [site.say("think"), site.say("think")]
    start()
    for prompt in others:
        assert ended(site, prompt).state == "completed"
    assert (ended(site, poison).state, poison.stop_reason) == ("failed", "crash_loop")
    assert site.effects() == {"1/0": STRIKES}
