"""Questions of policies to people: what was asked, as it is recorded, and whether an answer is one that it allows.

The policy itself may still refuse an answer, by rules that no schema can say. It then asks again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from agents.engine.complaints import REQUIRED, sentence
from agents.engine.decisions import Ask
from agents.engine.ledger import DEEPEST, JSON, copy_json
from agents.engine.outputs.kinds import ToolOutput
from agents.engine.paths import HUMAN
from agents.engine.runtime.asking import WHOLE, answer_problems
from agents.engine.schema import valid_texts

ANSWER_MOST = 20_000
"""Maximum length of an answer, in characters: of its words, or of its JSON."""
TOO_LONG = f"An answer may have at most {ANSWER_MOST:,} characters."
NO_VALUE = "Enter a value."


@dataclass(frozen=True)
class Question:
    """A policy's own question. It is answered with JSON that fits `form`, with one of the `choices`, else in words.

    `form` is the JSON Schema of the answer. If the policy refused an answer and asks again, `draft` is that answer, and
    `problems` are what is wrong with it, by field (WHOLE for all of it).
    """

    text: str = ""
    choices: tuple[str, ...] = ()
    form: dict[str, JSON] | None = None
    draft: JSON = None
    problems: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, entry: ToolOutput) -> Question | None:
        """Return what this entry asks now; None if it is no policy's question. What was redacted of it is missing."""
        if entry.tool != HUMAN or entry.approval is None or entry.approval.ask != Ask.QUESTION:
            return None
        asked = entry.input
        wrong = {at: why for at, why in _dict(asked.get("problems")).items() if isinstance(why, list)}
        problems = {at: [sentence(str(each)) for each in why] for at, why in wrong.items()}
        schema, choices = asked.get("schema"), tuple(asked.get("choices") or ())
        form = schema if isinstance(schema, dict) else None
        return cls(entry.approval.reason, choices, form, asked.get("draft"), problems)

    @property
    def payload(self) -> dict[str, JSON]:
        """What is recorded of it that an answer has to fit."""
        return {"schema": self.form, "choices": list(self.choices) or None}


class BadAnswer(ValueError):
    """An answer that the question does not allow. `problems`: why, by field, WHOLE for the answer as a whole."""

    def __init__(self, problems: dict[str, list[str]]) -> None:
        super().__init__(" ".join(f"{at}: {' '.join(why)}" if at else " ".join(why) for at, why in problems.items()))
        self.problems = problems


def checked_answer(question: Question, answer: object) -> JSON:
    """Return an untrusted answer, if it is JSON that the question allows. Raises BadAnswer."""
    try:
        given = valid_texts(copy_json(answer, "the answer", DEEPEST))
    except TypeError as error:
        raise BadAnswer({WHOLE: [sentence(str(error))]}) from error
    if _length(given) > ANSWER_MOST:  # before it is judged, which takes long for a long one
        raise BadAnswer({WHOLE: [TOO_LONG]})
    if wrong := answer_problems(question.payload, given):
        raise BadAnswer(
            {at: [NO_VALUE if each == REQUIRED else sentence(each) for each in why] for at, why in wrong.items()}
        )
    return given


def _length(answer: JSON) -> int:
    """Return the length of an answer. Letters count as one, also those that canonical JSON writes in six."""
    return len(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def _dict(value: JSON) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
