"""What is on record of runs: what each was given, and what came of it. The same for the history and for batches."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from agents.engine.agent.projection import render
from agents.engine.ledger import JSON, canonical
from agents.engine.outputs.kinds import ResultOutput, TextOutput
from conversations.display.call import displayed_result
from conversations.display.faithful import first_line
from conversations.display.schema_parsing import label_of
from conversations.ledger.redacted import is_redacted
from conversations.models import Output, Prompt, Step

FIELD_MOST = 60
"""Characters of a field of an input, or of a result, in a row."""
RESULT_MOST = 200
"""Characters of a result in one line."""


@dataclass(frozen=True)
class RunResult:
    """What a run returned as it is, or why it failed; and in words for people, of each field only its beginning."""

    text: str = ""
    words: str = ""


def inputs_of(runs: Collection[Prompt]) -> dict[int, dict[str, JSON]]:
    """Return the recorded inputs of these runs by prompt, secrets as references; a redacted one is left out."""
    if not runs:
        return {}
    calls = Step.objects.of(*runs).filter(path="", type="action_call").values_list("prompt", "payload")
    payloads = {prompt: json.loads(text)["payload"] for prompt, text in calls if not is_redacted(text)}
    return {prompt: payload.get("input", {}) for prompt, payload in payloads.items()}


def results_of(runs: Collection[Prompt]) -> dict[int, RunResult]:
    """Return what came of these runs by prompt, so far as they have ended."""
    found: dict[int, RunResult] = {}
    ended = [run for run in runs if run.ended]
    if not ended:
        return {}
    for row in Output.objects.of(*ended).filter(path="", type__in=["result", "text"]).order_by("position"):
        entry = row.entry()
        if isinstance(entry, ResultOutput):
            text, fields = displayed_result(entry.output)
            words = text or ", ".join(f"{each.name}: {first_line(each.text, FIELD_MOST)}" for each in fields)
            found[row.prompt_id] = RunResult(render(entry.output), words)
        elif isinstance(entry, TextOutput) and entry.role_hint == "system":
            found[row.prompt_id] = RunResult(entry.text, entry.text)
    return found


def lines_of(runs: Collection[Prompt]) -> dict[int, str]:
    """Return what came of these runs by prompt, so far as they have ended, in one line each."""
    return {prompt: first_line(result.text, RESULT_MOST) for prompt, result in results_of(runs).items()}


def short(value: JSON) -> str:
    """Return a value of an input in a few words."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ", ".join(map(str, value))
    if isinstance(value, dict | list):
        value = canonical(value)
    return first_line(label_of(value), FIELD_MOST) or "empty"
