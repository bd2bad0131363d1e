"""A turn at a moment in the past: any beginning of its ledger folds to the outputs of that moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.engine.closing import turn_usage
from agents.engine.ledger import Step
from agents.engine.outputs.kinds import Output
from agents.engine.outputs.timeline import Outputs
from conversations.ledger.prompt_row import PromptStanding
from conversations.ledger.reading import read_steps
from conversations.ledger.rows import output_columns
from conversations.models import Output as OutputRow
from conversations.models import Prompt, State
from conversations.usage.totals import SUMMED, Spent


@dataclass(frozen=True)
class TurnMoment:
    """A turn after `steps`, which are the first of its `known` steps.

    `before`, `after`: the seqs of the steps around the last one.
    """

    prompt: Prompt
    known: Sequence[Step]
    steps: Sequence[Step]
    standing: PromptStanding
    outputs: Sequence[Output]
    before: int | None
    after: int | None

    @classmethod
    def of(cls, prompt: Prompt, at: int | None = None) -> TurnMoment:
        """Return the turn after the last step up to the seq `at`; None: after its last step."""
        known = read_steps(prompt.conversation_id, prompt.pk)
        steps = known if at is None else [step for step in known if step.id <= at]
        after = known[len(steps)].id if len(steps) < len(known) else None
        before = steps[-2].id if len(steps) > 1 else None
        return cls(prompt, known, steps, PromptStanding().after(steps), Outputs(steps).in_order(), before, after)

    @property
    def at(self) -> int:
        """The seq of its last step; 0 without steps."""
        return self.steps[-1].id if self.steps else 0

    @property
    def state(self) -> str:
        """The state of the turn at that moment."""
        return self.standing.state or State.QUEUED.value

    @property
    def usage(self) -> Spent:
        """What it had used: tokens, their cost if it is known, and the models that had answered."""
        counts, models = self.standing.counts, turn_usage(self.steps)["models"]
        used = {name: counts.get(name, 0) for name in (*SUMMED, "unpriced")}
        return Spent(answers=counts.get("rounds", 0), models=tuple(models), **used)

    def rows(self) -> list[OutputRow]:
        """Return the outputs of that moment as unsaved rows, each with the id of its present row."""
        ids = dict(OutputRow.objects.of(self.prompt).values_list("position", "pk"))
        place = {"conversation": self.prompt.conversation, "prompt": self.prompt}
        return [OutputRow(pk=ids[output.position], **place, **output_columns(output)) for output in self.outputs]
