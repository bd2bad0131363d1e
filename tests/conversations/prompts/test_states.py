"""The states of a prompt: each is open or ended, and the hand-written SQL names the same sets."""

from conversations.database.sql import in_list
from conversations.models import State
from conversations.models.prompt import CLAIMABLE, ENDED, OPEN


def test_every_state_is_either_open_or_ended() -> None:
    assert sorted([*OPEN, *ENDED]) == sorted(State)


def test_what_a_worker_may_claim_is_open() -> None:
    assert set(CLAIMABLE) < set(OPEN)


def test_sql_lists_the_words_of_a_set() -> None:
    assert in_list(CLAIMABLE) == "('queued', 'running')"
