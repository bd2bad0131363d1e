"""Totals of tokens and money: sums over the usage rows, one query each."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.db.models import Count, F, Max, QuerySet, Sum
from django.utils import timezone

from agents.engine.closing import USAGE
from conversations.models import ApiKey, PassthroughUsage, Usage

DAY, MONTH = timedelta(hours=24), timedelta(days=30)
"""The periods that people see totals for."""
SUMMED = (*USAGE, "cost_nano_usd")


@dataclass(frozen=True)
class Spent:
    """What a number of answers used. Cached tokens are part of the input, reasoning tokens part of the output.

    `cost_nano_usd` sums the answers with a known price, in billionths of a US dollar; `unpriced` counts the others.
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
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    @property
    def cost_usd(self) -> float | None:
        """The cost in US dollars; None if the price of any answer is unknown, or if there are no answers."""
        return None if self.unpriced or not self.answers else self.cost_nano_usd / 1e9

    @property
    def cost(self) -> str:
        """The cost for people to read: "$0.12" or "at least $0.12"; "" if no price is known."""
        if self.unpriced == self.answers:
            return ""
        return f"{'at least ' if self.unpriced else ''}{dollars(self.cost_nano_usd)}"

    def __add__(self, other: Spent) -> Spent:
        """Return the sum of both."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("answers", "unpriced", *SUMMED)}
        return Spent(**sums, models=tuple(sorted({*self.models, *other.models})))


NOTHING = Spent()


@dataclass(frozen=True)
class KeyUsage:
    """What an API key used of one model under /v1. `estimated` counts the answers whose tokens are an estimate.

    `name` is "" if the key was revoked and nobody knows its name any more, and `model` for requests without an answer.
    """

    key: int
    name: str
    revoked: bool
    model: str
    requests: int = 0
    estimated: int = 0
    spent: Spent = NOTHING


@dataclass(frozen=True)
class PersonUsage:
    """What a person used in all, and what of it each of their keys used of each model."""

    spent: Spent
    keys: list[KeyUsage]

    @property
    def requests(self) -> int:
        """The requests under /v1, of all keys together."""
        return sum(each.requests for each in self.keys)


def dollars(nano: int) -> str:
    """Format billionths of a US dollar for people. Small amounts keep enough digits: only zero is shown as "$0.00"."""
    usd = nano / 1e9
    if 0 < usd < 0.0001:
        return "under $0.0001"
    return f"${usd:,.4f}" if 0 < usd < 0.01 else f"${usd:,.2f}"


def of_prompts(conversations: Collection[int], prompts: Collection[int]) -> dict[int, Spent]:
    """Return what each of these prompts of these conversations used. Prompts that asked no model are left out."""
    used = Usage.objects.filter(conversation_id__in=conversations, prompt_id__in=prompts)
    return _by("prompt_id", used) if prompts else {}


def of_conversations(conversations: Collection[int]) -> dict[int, Spent]:
    """Return what each of these conversations used. Conversations in which no model was asked are left out."""
    return _by("conversation_id", Usage.objects.filter(conversation_id__in=conversations)) if conversations else {}


def by_model(conversation: int) -> dict[str, Spent]:
    """Return what each model used in a conversation, most expensive first, then by tokens."""
    found: dict[str, Spent] = _by("model", Usage.objects.filter(conversation_id=conversation))
    return dict(sorted(found.items(), key=lambda item: (-item[1].cost_nano_usd, -item[1].total_tokens, item[0])))


def of_person(user_id: int, span: timedelta) -> PersonUsage:
    """Return what this person used within the last `span`: their conversations, including deleted ones, and keys."""
    recent = Usage.objects.filter(user=user_id, time__gt=timezone.now() - span)
    keys = by_key(user_id, span)
    return PersonUsage(sum((each.spent for each in keys), _by("user_id", recent).get(user_id, NOTHING)), keys)


def by_key(user_id: int, span: timedelta) -> list[KeyUsage]:
    """Return what each of this person's keys used of each model within the last `span`, by name, most tokens first.

    Models that never answered are taken together, for each key: anybody can ask for models that do not exist.
    """
    rows = PassthroughUsage.objects.filter(user=user_id, minute__gt=timezone.now() - span).order_by()
    sums = {f"sum_{name}": Sum(name) for name in ("requests", "estimated", "answers", "unpriced", *SUMMED)}
    asked: list[Any] = list(rows.values("key_id", "model").annotate(name=Max("key_name"), **sums))
    keys = dict(ApiKey.objects.filter(pk__in={row["key_id"] for row in asked}).values_list("pk", "name"))
    names: dict[int, str] = {}
    found: dict[tuple[int, str], KeyUsage] = {}
    for row in asked:
        key, model = row["key_id"], row["model"] if row["sum_answers"] else ""
        names[key] = max(names.get(key, ""), row["name"])  # a row of the time at which the key was revoked has none
        spent = Spent(
            **{name: row[f"sum_{name}"] for name in ("answers", "unpriced", *SUMMED)}, models=(model,) if model else ()
        )
        before = found.get((key, model), KeyUsage(key, "", key not in keys, model))
        requests, estimated = before.requests + row["sum_requests"], before.estimated + row["sum_estimated"]
        found[key, model] = replace(before, requests=requests, estimated=estimated, spent=before.spent + spent)
    usages = [replace(each, name=keys.get(each.key, names[each.key])) for each in found.values()]
    return sorted(usages, key=lambda each: (each.name, each.key, -each.spent.total_tokens, each.model))


def conversation_tokens(user_id: int) -> int:
    """Return the input and output tokens that this person's conversations used within the last 24 hours."""
    recent = Usage.objects.filter(user=user_id, time__gt=timezone.now() - DAY)
    return recent.aggregate(sum=Sum(F("input_tokens") + F("output_tokens")))["sum"] or 0


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
