"""Deciding several gates together. Each is decided separately, and a refused one does not stop the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.core.exceptions import ObjectDoesNotExist

from agents.engine.decisions import RUNS
from conversations.approvals.decisions import DecisionRefused, decide
from conversations.approvals.permissions import shown_to, told_to
from conversations.models import Output

if TYPE_CHECKING:
    from django.contrib.auth.models import User

TOGETHER_MOST = 20
"""Gates that can be decided together. More than that would be signed without being read."""


@dataclass(frozen=True)
class WantedDecision:
    """One decision of several, with the arguments of `decide`."""

    output_id: int
    decision: str
    digest: str
    reason: str = ""
    input: object = None
    seen: str = ""
    answer: object = None


class MixedRisk(DecisionRefused):
    """Calls of different risks were to be approved together, so nothing was decided. `risks`: output ids by risk."""

    def __init__(self, risks: Mapping[str, Sequence[int]]) -> None:
        words = ", ".join(sorted(risks))
        super().__init__(
            "mixed_risk",
            f"Nothing was decided: these have different risks ({words}). Approve those of one risk, then the others.",
            {"risks": {risk: list(ids) for risk, ids in risks.items()}},
        )


@dataclass(frozen=True)
class DecisionOutcome:
    """The outcome of one decision: the decided output, or why it was refused."""

    output_id: int
    output: Output | None = None
    refused: DecisionRefused | None = None


def decide_many(
    requests: Sequence[WantedDecision], by: User, via: str, *, verified: bool = False
) -> list[DecisionOutcome]:
    """Make these decisions one by one, as `decide` does; return their outcomes in the same order.

    A gate that does not exist, or that this person may not see, is refused as `not_found`. Raises ValueError for more
    than TOGETHER_MOST, and MixedRisk if calls of different risks would run: people who approve many at once look at
    them as one (C14).
    """
    if len(requests) > TOGETHER_MOST:
        raise ValueError(f"at most {TOGETHER_MOST} can be decided together")
    allowed = [each.output_id for each in requests if each.decision in RUNS]
    if len(risks := _risks(by, allowed)) > 1:
        raise MixedRisk(risks)
    told = set(told_to(by).filter(pk__in=[each.output_id for each in requests]).values_list("pk", flat=True))
    return [_outcome(each, by, via, verified) if each.output_id in told else _not_found(each) for each in requests]


def _risks(by: User, outputs: Sequence[int]) -> dict[str, list[int]]:
    """Return those of these gates that are pending and shown to this person, by risk."""
    found: dict[str, list[int]] = {}
    waiting = shown_to(by, Output.objects.pending()).filter(pk__in=outputs).order_by("prompt_id", "position")
    for pk, risk in waiting.values_list("pk", "risk"):
        found.setdefault(risk, []).append(pk)
    return found


def _outcome(wanted: WantedDecision, by: User, via: str, verified: bool) -> DecisionOutcome:
    try:
        output = decide(by=by, via=via, verified=verified, **vars(wanted))
    except ObjectDoesNotExist:
        return _not_found(wanted)
    except DecisionRefused as refused:
        return DecisionOutcome(wanted.output_id, refused=refused)
    return DecisionOutcome(wanted.output_id, output)


def _not_found(wanted: WantedDecision) -> DecisionOutcome:
    none = DecisionRefused("not_found", "This approval does not exist, or you may not see it.")
    return DecisionOutcome(wanted.output_id, refused=none)
