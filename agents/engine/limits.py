"""Limits: the budgets of a turn, and the size of what a model is sent."""

from __future__ import annotations

from dataclasses import dataclass

BYTES_A_TOKEN = 4
"""A rough estimate for English text in JSON; it errs on the side of sending less."""


@dataclass(frozen=True)
class Limits:
    """Defaults from R3 (rounds, seconds, parse failures), S77 (result size) and C13 (a day to decide).

    rounds: model calls in a turn, across all its pauses. seconds: running time, without the time spent waiting for
    people. parse_failures: unreadable answers in a row. attempts: how often one model is tried in a round while it has
    transient errors. wrap_up: with this many rounds left, the model is told to finish. fallback: whether there is a
    model of tier `fallback` to ask when the turn's own does not answer. tool_seconds: the limit of a call whose tool
    declares none. approval_hours: how long a gate stays open. result_characters: how much of one result the model sees.
    history_tokens: the budget for earlier prompts, at 4 bytes a token; the last prompt is always included.
    tool_tokens, blueprint_tokens, memory_tokens: likewise the budgets for the tools, the blueprints and the memories of
    a round, which the plugins `tools`, `blueprints` and `memory` keep to.
    """

    rounds: int = 10
    seconds: float = 300.0
    parse_failures: int = 3
    attempts: int = 7
    wrap_up: int = 2
    fallback: bool = False
    tool_seconds: float = 60.0
    approval_hours: float = 24.0
    result_characters: int = 16_000
    history_tokens: int = 100_000
    tool_tokens: int = 8_000
    blueprint_tokens: int = 1_500
    memory_tokens: int = 600
