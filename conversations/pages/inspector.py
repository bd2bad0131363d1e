"""The inspector: the ledger of one turn, step by step, and how the page looked after each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import AnonymousUser, User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from agents.engine.agent.projection import shorten
from agents.engine.ledger import Step
from agents.engine.root import system_of
from agents.models import SystemPrompt
from conversations.accounts.http import PersonRequest
from conversations.database.ids import row_id
from conversations.display.faithful import spelled_out
from conversations.display.moments import TurnMoment
from conversations.display.stood import stands_after
from conversations.display.value import without_references
from conversations.ledger.redacted import MARK
from conversations.models import Prompt, State
from conversations.pages.decorators import page_view
from conversations.pages.sidebar import sidebar
from conversations.pages.timeline.blocks import Block
from conversations.pages.timeline.turns import build_turn, read_outputs

STEPS_MOST = 100
"""How many steps are listed at a time, around the selected one."""
PAYLOAD_MOST = 12_000
"""Characters of a payload that are shown. Of a longer payload, the beginning and the end are shown."""


@dataclass(frozen=True)
class InspectorRow:
    """One step in the list. `chosen`: the turn is shown as it was after this step."""

    step: Step
    chosen: bool
    seconds: float

    @property
    def time(self) -> datetime:
        """When the step was recorded."""
        return datetime.fromisoformat(self.step.time)

    @property
    def path(self) -> str:
        """The path of the call that the step belongs to; "." for the turn itself."""
        return self.step.path or "."

    @property
    def what(self) -> str:
        """The policy that was called, if the step is a call."""
        return str(self.step.payload.get("policy", "")) if self.step.type == "action_call" else ""

    @property
    def redacted(self) -> bool:
        """Whether the content of the step was redacted."""
        return self.step.payload.get(MARK) is True

    @property
    def payload(self) -> str:
        """The recorded payload, shortened to PAYLOAD_MOST."""
        return shorten(spelled_out(without_references(self.step.payload)), PAYLOAD_MOST)


@dataclass(frozen=True)
class TurnSystemPrompt:
    """The system prompt of a turn: its name and version. `page`: that of the version, for staff who may see it."""

    name: str
    version: int
    page: str

    @classmethod
    def of(cls, moment: TurnMoment, reader: User) -> TurnSystemPrompt | None:
        """Return the system prompt that a turn was started with; None if it has none of the site's."""
        call = next((step for step in moment.known if step.type == "action_call" and not step.path), None)
        if call is None or (system := system_of(call)) is None:
            return None
        pk, version = int(system["id"]), int(system["version"])
        found = SystemPrompt.objects.filter(pk=pk).first()
        may = found and reader.is_staff and reader.has_perm("agents.view_systemprompt")
        page = f"{reverse('admin:agents_systemprompt_versions', args=[pk])}?after={version}" if may else ""
        return cls(str(found or f"System prompt {pk}"), version, page)


@page_view
def inspector(request: PersonRequest, pk: int) -> HttpResponse:
    """Show the steps of one of the user's own turns, and its outputs after the step `?at=`, or after the last step."""
    mine = Prompt.objects.visible_to(request.user).select_related("conversation__owner")
    prompt = get_object_or_404(mine, pk=pk)
    moment = _moment(request, prompt)
    context = {
        "prompt": prompt,
        "conversation": prompt.conversation,
        "moment": moment,
        "state": State(moment.state).label,
        "usage": moment.usage,
        "system_prompt": TurnSystemPrompt.of(moment, request.user),
        "stood": stands_after(moment.steps),
        "may_open_blueprints": request.user.is_staff and request.user.has_perm("agents.view_blueprint"),
        "place": len(moment.steps),
        "count": len(moment.known),
        "first": moment.known[0].id if moment.known else 0,
        "last": moment.known[-1].id if moment.known else 0,
        "rows": _rows(moment.known, len(moment.steps)),
        "blocks": _blocks(prompt, moment),
        "has": {},
        "sidebar": sidebar(request.user, "", archived=False),
    }
    return render(request, "conversations/inspector.html", context)


def _moment(request: HttpRequest, prompt: Prompt) -> TurnMoment:
    """Return the turn after the requested step. Raises Http404 if it does not exist."""
    given = request.GET.get("at")
    moment = TurnMoment.of(prompt, None if given is None else row_id(given) or 0)
    if given is not None and not moment.steps:
        raise Http404("There is no such step.")
    return moment


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
    """Return the blocks as they looked to somebody who may not decide: nothing is decided in the inspector."""
    then = Prompt.objects.get(pk=prompt.pk)
    then.state, then.stop_reason, then.visible = moment.state, moment.standing.stop_reason, True
    return build_turn(then, read_outputs(moment.rows(), AnonymousUser()), {}, {}).blocks
