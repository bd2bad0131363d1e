"""The budgets of a turn, and the sizes of what a model is told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Defaults from R3 (rounds, seconds, parse failures), S77 (result size) and C13 (a day to decide).

    rounds: model calls of a turn, over all its pauses. seconds: running time, waiting for people left out.
    parse_failures: answers in a row that cannot be read. attempts: how often one round is asked while the provider
    fails in passing. wrap_up: rounds left at which the model is told to come to an end. fallback: a model of that tier
    is there, and is asked where the turn's own does not answer. tool_seconds: a call whose tool declares no limit.
    approval_hours: how long a gate stays open. result_characters: what the model sees of one result. history_tokens:
    of earlier prompts, at 4 bytes a token; the last one is told of in any case.
    """

    rounds: int = 10
    seconds: float = 300.0
    parse_failures: int = 3
    attempts: int = 4
    wrap_up: int = 2
    fallback: bool = False
    tool_seconds: float = 60.0
    approval_hours: float = 24.0
    result_characters: int = 16_000
    history_tokens: int = 100_000
