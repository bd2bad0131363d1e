"""Several gates decided together: each gets a verdict of its own, and one that is refused stops no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.core.exceptions import ObjectDoesNotExist

from agents.engine.decisions import RUNS
from conversations.approvals.decisions import DecisionRefused, decide
from conversations.approvals.permissions import shown_to
from conversations.models import Output

if TYPE_CHECKING:
    from django.contrib.auth.models import User

TOGETHER_MOST = 20
"""Gates that are decided together: more are signed without being read."""


@dataclass(frozen=True)
class WantedDecision:
    """One decision that somebody makes: what `decide` is given."""

    output_id: int
    decision: str
    digest: str
    reason: str = ""
    input: object = None
    answer: str | None = None


class MixedRisk(DecisionRefused):
    """Calls of several risks were to be allowed together, so nothing was decided. `risks`: the calls of each, by id."""

    def __init__(self, risks: Mapping[str, Sequence[int]]) -> None:
        words = ", ".join(sorted(risks))
        super().__init__(
            "mixed_risk",
            f"Nothing was decided: these carry different risks ({words}). Approve those of one risk, then the others.",
            {"risks": {risk: list(ids) for risk, ids in risks.items()}},
        )


@dataclass(frozen=True)
class DecisionOutcome:
    """What became of one of them: the decided output, or why it was refused."""

    output_id: int
    output: Output | None = None
    refused: DecisionRefused | None = None


def decide_many(requests: Sequence[WantedDecision], by: User, via: str) -> list[DecisionOutcome]:
    """Decide each for itself, in this order, which is that of the verdicts; see `decide`.

    A gate that nobody was asked is refused as `not_found`. Raises ValueError for more than TOGETHER_MOST, MixedRisk
    where calls of different risks are to run: who says yes to many at once looks at them as one (C14).
    """
    if len(requests) > TOGETHER_MOST:
        raise ValueError(f"at most {TOGETHER_MOST} can be decided together: so many can be read")
    allowed = [each.output_id for each in requests if each.decision in RUNS]
    if len(risks := _risks(by, allowed)) > 1:
        raise MixedRisk(risks)
    return [_outcome(each, by, via) for each in requests]


def _risks(by: User, outputs: Sequence[int]) -> dict[str, list[int]]:
    """Those of these gates that wait and are shown to this person, by their risk."""
    found: dict[str, list[int]] = {}
    waiting = shown_to(by, Output.objects.pending()).filter(pk__in=outputs).order_by("prompt_id", "position")
    for pk, risk in waiting.values_list("pk", "risk"):
        found.setdefault(risk, []).append(pk)
    return found


def _outcome(wanted: WantedDecision, by: User, via: str) -> DecisionOutcome:
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
        return DecisionOutcome(wanted.output_id, refused=DecisionRefused("not_found", "This is not there."))
    except DecisionRefused as refused:
        return DecisionOutcome(wanted.output_id, refused=refused)
    return DecisionOutcome(wanted.output_id, output)
