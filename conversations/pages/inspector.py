"""The inspector: the ledger of one turn, step by step, and what stood on the page after each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from agents.engine.agent.projection import shorten
from agents.engine.ledger import Step
from conversations.accounts.http import PersonRequest
from conversations.display.faithful import spelled_out
from conversations.display.moments import TurnMoment
from conversations.ledger.redacted import MARK
from conversations.models import Prompt, State
from conversations.pages.sidebar import sidebar
from conversations.pages.timeline.blocks import Block
from conversations.pages.timeline.turns import read, turn

STEPS_MOST = 100
"""Steps that are listed at a time, about the one that is looked at."""
PAYLOAD_MOST = 12_000
"""Characters of a payload on the page; of a longer one head and tail are shown."""


@dataclass(frozen=True)
class InspectorRow:
    """One step in the list. `chosen`: the one after which the turn is shown."""

    step: Step
    chosen: bool
    seconds: float

    @property
    def time(self) -> datetime:
        """When it happened."""
        return datetime.fromisoformat(self.step.time)

    @property
    def path(self) -> str:
        """The call it belongs to; "." for the turn itself."""
        return self.step.path or "."

    @property
    def what(self) -> str:
        """What was called, where it is a call."""
        return str(self.step.payload.get("policy", "")) if self.step.type == "action_call" else ""

    @property
    def redacted(self) -> bool:
        """Whether its content was taken out."""
        return self.step.payload.get(MARK) is True

    @property
    def payload(self) -> str:
        """What is recorded of it."""
        return shorten(spelled_out(self.step.payload), PAYLOAD_MOST)


@login_required
@require_GET
def inspector(request: PersonRequest, pk: int) -> HttpResponse:
    """The steps of a turn of one's own, and what had come of it after the step `?at=`; after the last one without."""
    mine = Prompt.objects.visible_to(request.user).select_related("conversation__owner")
    prompt = get_object_or_404(mine, pk=pk)
    known = TurnMoment.of(prompt)
    moment = TurnMoment.of(prompt, _at(request, known))
    context = {
        "prompt": prompt,
        "conversation": prompt.conversation,
        "moment": moment,
        "state": State(moment.state).label,
        "usage": moment.usage,
        "place": len(moment.steps),
        "count": len(known.steps),
        "first": known.steps[0].id if known.steps else 0,
        "last": known.at,
        "rows": _rows(known.steps, len(moment.steps)),
        "blocks": _blocks(prompt, moment),
        "has": {},
        "sidebar": sidebar(request.user, "", archived=False),
    }
    return render(request, "conversations/inspector.html", context)


def _at(request: HttpRequest, known: TurnMoment) -> int | None:
    """The step that is asked for. Raises Http404 for one that is none."""
    said = request.GET.get("at")
    if said is None:
        return None
    if not (said.isascii() and said.isdigit() and len(said) < 19) or not known.steps or int(said) < known.steps[0].id:
        raise Http404("There is no such step.")
    return int(said)


def _rows(steps: Sequence[Step], place: int) -> list[InspectorRow]:
    begin = max(0, min(place - STEPS_MOST // 2, len(steps) - STEPS_MOST))
    began = datetime.fromisoformat(steps[0].time) if steps else None
    return [
        InspectorRow(
            step, number == place, (datetime.fromisoformat(step.time) - began).total_seconds() if began else 0.0
        )
        for number, step in enumerate(steps[begin : begin + STEPS_MOST], begin + 1)
    ]


def _blocks(prompt: Prompt, moment: TurnMoment) -> list[Block]:
    """What stood on the page, as nobody in particular saw it: here nothing is decided."""
    then = Prompt.objects.get(pk=prompt.pk)
    then.state, then.stop_reason, then.visible = moment.state, moment.stop_reason, True
    return turn(then, read(moment.rows(), AnonymousUser()), {}, {}).blocks
