"""Public events: what browsers and API clients are sent, numbered by the step that caused them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from agents.engine.closing import turn_end
from agents.engine.ledger import Step
from agents.engine.outputs.kinds import Frozen, Output
from agents.engine.outputs.timeline import Outputs
from agents.engine.root import words_of


class Event(Frozen):
    """One event. `seq` is the id of the step that caused it; several events of one step keep their order."""

    type: str
    seq: int
    conversation: int
    prompt: int
    time: str


class PromptCreated(Event):
    """The turn was created, by a message or by the system, and waits for a worker."""

    type: Literal["prompt.created"] = "prompt.created"
    input: str | None = None


class PromptStarted(Event):
    """A worker started the turn for the first time (S81)."""

    type: Literal["prompt.started"] = "prompt.started"


class OutputEvent(Event):
    """An event about one output, with the output as it is then."""

    output: dict[str, Any]


class OutputCreated(OutputEvent):
    """The timeline has a new output (S25)."""

    type: Literal["output.created"] = "output.created"


class OutputUpdated(OutputEvent):
    """An output changed: for example, its call began, waits or has its result."""

    type: Literal["output.updated"] = "output.updated"


class ApprovalRequested(OutputEvent):
    """A call waits for a person (S32). `output` holds its tool, call id, input and reason."""

    type: Literal["approval.requested"] = "approval.requested"


class ApprovalDecided(OutputEvent):
    """A gate was decided, by a person, by a rule, or because it expired."""

    type: Literal["approval.decided"] = "approval.decided"


class PromptPaused(Event):
    """The turn waits for people, or for a time (S84). `until`: when the first of its sleeps is over."""

    type: Literal["prompt.paused"] = "prompt.paused"
    pending_action_count: int
    until: str | None = None
    steps_used: int = 0
    steps_remaining: int = 0


class PromptResumed(Event):
    """The turn no longer waits for anybody (S85)."""

    type: Literal["prompt.resumed"] = "prompt.resumed"
    resumed_reason: str
    steps_remaining: int = 0


class PromptEnded(Event):
    """The turn ended. This happens exactly once (S44). Whoever sends the event adds the usage."""

    type: Literal["prompt.completed", "prompt.failed", "prompt.cancelled"]
    stop_reason: str
    usage: dict[str, Any] = Field(default_factory=dict)


class EventFold:
    """The fold of the steps of one prompt into events, in order."""

    def __init__(self, conversation: int, prompt: int, steps: Iterable[Step] = ()) -> None:
        """`steps` are those before the first one whose events are wanted."""
        self._place = {"conversation": conversation, "prompt": prompt}
        self._outputs = Outputs()
        self._started = False
        for step in steps:
            self.add(step)

    def add(self, step: Step) -> list[Event]:
        """Return the events of the next step: one or none for most. Of several, only the last carries the step's id."""
        at: dict[str, Any] = {**self._place, "seq": step.id, "time": step.time}
        output = self._outputs.add(step)
        events: list[Event] = [] if output is None else _output_events(step, output, at)
        return events + (self._turn_events(step, at) if not step.path else [])

    def _turn_events(self, step: Step, at: dict[str, Any]) -> list[Event]:
        data = step.payload
        match step.type:
            case "action_call":
                return [PromptCreated(input=words_of(step), **at)]
            case "action_start" if not self._started:
                self._started = True
                return [PromptStarted(**at)]
            case "pause":
                return [PromptPaused.model_validate(data | at)]
            case "resume":
                return [PromptResumed.model_validate(data | at)]
            case "action_result":
                state, why = turn_end(step)
                return [PromptEnded(type=f"prompt.{state}", stop_reason=why, **at)]
        return []


def _output_events(step: Step, output: Output, at: dict[str, Any]) -> list[Event]:
    shown = output.model_dump(mode="json")
    opened = output.position == step.id
    events: list[Event] = [(OutputCreated if opened else OutputUpdated)(output=shown, **at)]
    gate = shown.get("approval")
    if gate and gate["path"] == step.path:
        if step.type == "action_call":
            events.append(ApprovalRequested(output=shown, **at))
        elif step.type == "action_result":
            events.append(ApprovalDecided(output=shown, **at))
    return events
