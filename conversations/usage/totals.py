"""What the answers of models came to in tokens and money: sums over the rows of usage, each by one query."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, QuerySet, Sum
from django.utils import timezone

from agents.engine.ledger import JSON
from conversations.models import Usage

DAY, MONTH = timedelta(hours=24), timedelta(days=30)
"""The spans that people are told of."""
SUMMED = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens", "cost_nano_usd")


@dataclass(frozen=True)
class Spent:
    """What some answers took. Cached tokens are part of the input, those of reasoning part of the output.

    `cost_nano_usd` is of those with a price, in billionths of a US dollar; `unpriced` counts the others.
    """

    answers: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_nano_usd: int = 0
    unpriced: int = 0
    models: tuple[str, ...] = ()

    @property
    def total_tokens(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens

    @property
    def cost_usd(self) -> float | None:
        """US dollars; None where that is not known of every answer, or there was none."""
        return None if self.unpriced or not self.answers else self.cost_nano_usd / 1e9

    @property
    def cost(self) -> str:
        """The cost as people read it: "$0.12", "at least $0.12"; "" where no price is known."""
        if self.unpriced == self.answers:
            return ""
        return f"{'at least ' if self.unpriced else ''}{dollars(self.cost_nano_usd)}"

    def __add__(self, other: Spent) -> Spent:
        """Both together."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("answers", "unpriced", *SUMMED)}
        return Spent(**sums, models=tuple(sorted({*self.models, *other.models})))


NOTHING = Spent()


def dollars(nano: int) -> str:
    """Billionths of a US dollar for people. Small sums keep the figures that say something: only nothing is "$0.00"."""
    usd = nano / 1e9
    if 0 < usd < 0.0001:
        return "under $0.0001"
    return f"${usd:,.4f}" if 0 < usd < 0.01 else f"${usd:,.2f}"


def of_prompts(prompts: Collection[int]) -> dict[int, Spent]:
    """What each of these prompts spent; those that asked no model are left out."""
    return _by("prompt_id", Usage.objects.filter(prompt_id__in=prompts)) if prompts else {}


def of_conversations(conversations: Collection[int]) -> dict[int, Spent]:
    """What each of these conversations spent; those in which no model was asked are left out."""
    return _by("conversation_id", Usage.objects.filter(conversation_id__in=conversations)) if conversations else {}


def by_model(conversation: int) -> dict[str, Spent]:
    """What each model spent in a conversation, the dearest and then the most talkative first."""
    found: dict[str, Spent] = _by("model", Usage.objects.filter(conversation_id=conversation))
    return dict(sorted(found.items(), key=lambda item: (-item[1].cost_nano_usd, -item[1].total_tokens, item[0])))


def of_person(user_id: int, span: timedelta) -> Spent:
    """What was spent in this person's conversations within the last `span`, deleted ones too."""
    recent = Usage.objects.filter(user=user_id, time__gt=timezone.now() - span)
    return _by("user_id", recent).get(user_id, NOTHING)


def spent_json(spent: Spent) -> dict[str, JSON]:
    """For programs, in the words of a prompt's usage."""
    return {
        "input_tokens": spent.input_tokens,
        "cached_tokens": spent.cached_tokens,
        "output_tokens": spent.output_tokens,
        "reasoning_tokens": spent.reasoning_tokens,
        "total_tokens": spent.total_tokens,
        "cost_usd": spent.cost_usd,
        "models": list(spent.models),
    }


def _by(column: str, rows: QuerySet[Usage]) -> dict[Any, Spent]:
    columns = dict.fromkeys((column, "model"))
    sums = {f"sum_{name}": Sum(name) for name in SUMMED}
    counted = rows.order_by().values(*columns).annotate(answers=Count("pk"), priced=Count("cost_nano_usd"), **sums)
    found: dict[Any, Spent] = {}
    for row in counted:
        spent = Spent(
            **{name: row[f"sum_{name}"] or 0 for name in SUMMED},
            answers=row["answers"],
            unpriced=row["answers"] - row["priced"],
            models=(row["model"],) if row["model"] else (),
        )
        found[row[column]] = found.get(row[column], NOTHING) + spent
    return found
