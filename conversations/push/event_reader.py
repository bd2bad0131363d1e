"""Reading the events of a conversation from its steps. They are the same whether sent live or caught up with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.db.models import QuerySet

from agents.engine.ledger import Step
from agents.engine.outputs.events import Event, EventFold
from agents.engine.outputs.registry import load_output
from conversations.display.shapes.events import EVENTS
from conversations.display.shapes.outputs import files_of, output_shape
from conversations.display.shapes.record import Usage
from conversations.models import Conversation
from conversations.models import Output as OutputRow
from conversations.models import Step as StepRow
from conversations.usage.totals import NOTHING, of_prompts

AT_ONCE, CHARACTERS_AT_ONCE = 200, 500_000
"""How many steps, and about how many characters, are read in one go: other clients wait, and slow ones buffer."""
TERMINAL = frozenset({"prompt.completed", "prompt.failed", "prompt.cancelled"})
"""The types of the last event of a prompt."""

Numbered = tuple[int, Step]
"""The id of a prompt, and one of its steps."""


class Answer(NamedTuple):
    """A whole text of the model, and the path at which it was streamed."""

    path: str
    text: str


class SentEvent(NamedTuple):
    """An event as it is sent. `last`: the last event of its step; only that one carries the `id` to resume from.

    `answer`: the text that it brings, if that is one of the model.
    """

    seq: int
    last: bool
    prompt: int
    type: str
    text: str
    answer: Answer | None = None


class EventReader:
    """Reads the recorded events of a conversation that come after the step `after`."""

    def __init__(self, conversation: int, after: int) -> None:
        self.conversation, self.at = conversation, after
        self.more = True  # whether there are more steps than were read
        self._folds: dict[int, EventFold] = {}

    def read(self, until: int | None = None) -> list[SentEvent]:
        """Return the events of the next steps, at most AT_ONCE of them. `at` is then the last step that was read.

        `until`: the last step to read, though there may be more. Events whose output was erased meanwhile are left out.
        A client beyond the last step, e.g. from before a backup was restored, continues at the present.
        """
        rows = StepRow.objects.filter(conversation=self.conversation, seq__gt=self.at).order_by("seq")
        steps, more = _some(rows if until is None else rows.filter(seq__lte=until))
        try:
            sent = self._read_events(steps)
        except BaseException:
            self._folds.clear()  # they may be ahead of `at`
            raise
        self.at = steps[-1][1].id if steps else min(self.at, last_step(self.conversation))
        self.more = more
        return sent

    def _read_events(self, steps: Sequence[Numbered]) -> list[SentEvent]:
        by_step = [self._events(prompt, step) for prompt, step in steps]
        details = _Details(self.conversation, [event for events in by_step for event in events])
        answers = [_answer_in(step) for _, step in steps]
        return [sent for events, answer in zip(by_step, answers, strict=True) for sent in details.tell(events, answer)]

    def _events(self, prompt: int, step: Step) -> list[Event]:
        if prompt not in self._folds:
            opening = step.type == "action_call" and not step.path
            rows = StepRow.objects.filter(conversation=self.conversation, prompt=prompt, seq__lt=step.id).order_by(
                "seq"
            )
            earlier = _steps(rows.none() if opening else rows)
            self._folds[prompt] = EventFold(self.conversation, prompt, (step for _, step, _ in earlier))
        events = self._folds[prompt].add(step)
        if any(event.type in TERMINAL for event in events):
            del self._folds[prompt]
        return events


def last_step(conversation: int) -> int:
    """Return the number of the conversation's last step; 0 if there is none."""
    return Conversation.objects.filter(pk=conversation).values_list("seq", flat=True).first() or 0


def _some(rows: QuerySet[StepRow]) -> tuple[list[Numbered], bool]:
    """Return the first of these steps, as many as are read in one go, and whether there may be more."""
    found: list[Numbered] = []
    characters = 0
    for prompt, step, size in _steps(rows[:AT_ONCE]):
        found.append((prompt, step))
        characters += size
        if characters > CHARACTERS_AT_ONCE:
            return found, True
    return found, len(found) == AT_ONCE


def _steps(rows: QuerySet[StepRow]) -> Iterator[tuple[int, Step, int]]:
    """Yield prompt, step, and the number of characters in the step."""
    fields = rows.values_list("prompt_id", "actor", "type", "payload", "path", "seq", "time")
    for prompt, actor, type, payload, path, seq, at in fields.iterator(chunk_size=20):
        said = json.loads(payload)
        step = Step.recorded(actor=actor, type=type, payload=said, path=path, id=seq, time=at.isoformat())
        yield prompt, step, len(payload)


class _Details:
    """What events say beyond their steps: ids and files of outputs, usage of a turn. Read once for many events."""

    def __init__(self, conversation: int, events: Sequence[Event]) -> None:
        entries = {id(event): load_output(event.output) for event in events if hasattr(event, "output")}
        self._entries = entries
        prompts, positions = {event.prompt for event in events}, {entry.position for entry in entries.values()}
        rows = OutputRow.objects.filter(conversation=conversation, prompt__in=prompts, position__in=positions)
        self._ids = dict(rows.values_list("position", "pk"))
        self._files = files_of(entries.values())
        self._spent = of_prompts([conversation], {event.prompt for event in events if event.type in TERMINAL})

    def tell(self, events: Sequence[Event], answer: Answer | None) -> list[SentEvent]:
        """Return the events of one step, ready to be sent."""
        shown = [event for event in events if not self._is_erased(event)]
        return [self._sent(event, answer, last=event is shown[-1]) for event in shown]

    def _is_erased(self, event: Event) -> bool:
        entry = self._entries.get(id(event))
        return entry is not None and entry.position not in self._ids

    def _sent(self, event: Event, answer: Answer | None, *, last: bool) -> SentEvent:
        given: dict[str, Any] = {"id": event.seq if last else None}
        if entry := self._entries.get(id(event)):
            given["output"] = output_shape(entry, self._ids[entry.position], self._files)
        elif event.type in TERMINAL:
            given["usage"] = Usage.read(self._spent.get(event.prompt, NOTHING))
        shape = EVENTS[event.type].read(event, **given)
        return SentEvent(event.seq, last, event.prompt, event.type, shape.text_value(), answer)


def _answer_in(step: Step) -> Answer | None:
    text = step.payload.get("text") if step.type == "text" and step.actor == "model" else None
    return Answer(step.path, text) if isinstance(text, str) else None
