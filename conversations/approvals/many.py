"""Several gates decided together: each gets a verdict of its own, and one that is refused stops no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.core.exceptions import ObjectDoesNotExist

from conversations.approvals.decisions import DecisionRefused, decide
from conversations.models import Output

if TYPE_CHECKING:
    from django.contrib.auth.models import User

TOGETHER_MOST = 20
"""Gates that are decided together: more are signed without being read."""


@dataclass(frozen=True)
class Wanted:
    """One decision that somebody makes: what `decide` is given."""

    output_id: int
    decision: str
    digest: str
    reason: str = ""
    input: object = None
    answer: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What became of one of them: the decided output, or why it was refused."""

    output_id: int
    output: Output | None = None
    refused: DecisionRefused | None = None


def decide_many(requests: Sequence[Wanted], by: User, via: str) -> list[Verdict]:
    """Decide each for itself, in this order, which is that of the verdicts; see `decide`.

    A gate that nobody was asked is refused as `not_found`. Raises ValueError for more than TOGETHER_MOST.
    """
    if len(requests) > TOGETHER_MOST:
        raise ValueError(f"at most {TOGETHER_MOST} can be decided together: so many can be read")
    return [_verdict(each, by, via) for each in requests]


def _verdict(wanted: Wanted, by: User, via: str) -> Verdict:
    try:
        output = decide(
            wanted.output_id,
            by,
            wanted.decision,
            digest=wanted.digest,
            via=via,
            reason=wanted.reason,
            input=wanted.input,
            answer=wanted.answer,
        )
    except ObjectDoesNotExist:
        return Verdict(wanted.output_id, refused=DecisionRefused("not_found", "This is not there."))
    except DecisionRefused as refused:
        return Verdict(wanted.output_id, refused=refused)
    return Verdict(wanted.output_id, output)
