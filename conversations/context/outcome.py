"""The outcome of a turn, as far as it has come: what it waits for, how it ended, what it used."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Max

from agents.engine.agent.turn import LIMITS
from agents.engine.interfaces.provider import CUT_BY
from conversations.api.errors import RequestRefused
from conversations.context.errors import deleted
from conversations.context.shapes import ApprovalItem, ContextApproval, TokenUsage
from conversations.display.shapes.outputs import Approval
from conversations.models import Output, Prompt, State, Step
from conversations.prompts.start import TurnInProgress
from conversations.usage.totals import NOTHING, of_prompts

CUT_SHORT = frozenset(LIMITS) - {"parse_failures"}
"""Stop reasons of turns that have an answer as far as they got."""
THEN = "Then the work goes on by itself. Send a message after that to hear what came of it."
"""Ends what a client shows of an approval."""
WAITS = "A turn of this conversation waits for a decision, so nothing was sent. Decide it, or stop the turn: {url}"
STOPPED = "This turn was stopped. Send the message again to start another."
ITSELF = ("internal_error", "crash_loop")
"""Stop reasons that are the site's own fault, not the model's."""
FAILED = "The turn failed: {why}. The conversation on the site says more: {page}"


@dataclass(frozen=True)
class Outcome:
    """How a turn stands. `finish`: the format's word for why its answer ends. `error`: why it has none.

    `paused_at`: the step at which it paused last.
    """

    state: str
    finish: str
    approval: ContextApproval | None
    usage: TokenUsage
    paused_at: int
    error: RequestRefused | None = None


def outcome(prompt_id: int, site: str) -> Outcome:
    """Return how a turn stands now. `site`: the address of the site, for links. Raises RequestRefused if it is gone."""
    prompt = Prompt.objects.select_related("conversation").filter(pk=prompt_id).first()
    if prompt is None:
        raise deleted()
    spent = of_prompts([prompt.conversation_id], [prompt.pk]).get(prompt.pk, NOTHING)
    approval = approval_of(prompt, site)
    pauses = Step.objects.filter(conversation=prompt.conversation_id, prompt=prompt, path="", type="pause")
    paused_at = pauses.aggregate(last=Max("seq"))["last"] or 0
    return Outcome(prompt.state, _finish(prompt), approval, TokenUsage.of(spent), paused_at, _error(prompt, site))


def approval_of(prompt: Prompt, site: str) -> ContextApproval | None:
    """Return what a turn waits for; None if it waits for nobody."""
    if prompt.state != State.WAITING:
        return None
    page = f"{site}{prompt.conversation.get_absolute_url()}"
    pending = Output.objects.pending().filter(conversation=prompt.conversation_id, prompt=prompt).order_by("position")
    items = [_item(row, page) for row in pending.select_related("conversation__owner")]
    return ContextApproval(prompt=prompt.pk, state=prompt.state, items=items) if items else None


def _item(row: Output, page: str) -> ApprovalItem:
    gate = Approval.of(row)
    asked = gate.approval
    return ApprovalItem(
        id=row.pk,
        url=f"{page}#a-{row.pk}",
        tool=gate.tool,
        title=asked.title,
        reason=asked.reason,
        risk=asked.risk,
        expires_at=asked.expires_at,
    )


def in_progress(error: TurnInProgress, site: str) -> RequestRefused:
    """Return the refusal of a message to a conversation whose turn has not ended, with what that waits for."""
    found = Prompt.objects.select_related("conversation").filter(pk=error.prompt or 0).first()
    approval = approval_of(found, site) if found else None
    if approval is None:
        return RequestRefused(409, "turn_in_progress", f"{error} Its id is {error.prompt}.")
    why = WAITS.format(url=approval.items[0].url)
    return RequestRefused(409, "turn_in_progress", why, approval=approval.json_value())


def words_of(approval: ContextApproval) -> str:
    """Return what a client shows to its user of an approval."""
    lines = [_line(item) for item in approval.items]
    number = "a decision" if len(lines) == 1 else f"{len(lines)} decisions"
    return "\n".join([f"This waits for {number}:", "", *lines, "", THEN])


def _line(item: ApprovalItem) -> str:
    said = ": ".join(dict.fromkeys(filter(None, (item.title, item.reason)))) or item.tool
    return f"- {' '.join(said.split())}\n  Decide: {item.url}"


def _finish(prompt: Prompt) -> str:
    if prompt.state == State.FAILED:
        return "length"
    rounds = Step.objects.filter(
        conversation=prompt.conversation_id, prompt=prompt, type="action_result", actor="model"
    )
    last = rounds.exclude(path__contains="/").order_by("-seq").first()
    cut = last.content.get("finish") if last else None
    return cut if cut in CUT_BY else "stop"


def _error(prompt: Prompt, site: str) -> RequestRefused | None:
    """Return why an ended turn has no answer; None if it has one, or has not ended."""
    if prompt.state == State.CANCELLED:
        return RequestRefused(409, "turn_stopped", STOPPED)
    if prompt.state != State.FAILED or prompt.stop_reason in CUT_SHORT:
        return None
    why, page = prompt.stop_reason.replace("_", " "), f"{site}{prompt.conversation.get_absolute_url()}"
    status = 500 if prompt.stop_reason in ITSELF else 502
    return RequestRefused(status, prompt.stop_reason, FAILED.format(why=why, page=page))
