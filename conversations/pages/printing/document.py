"""A conversation as a document: each turn's message, what the agent did and said, and what was decided, by name.

What stands in it is what the export has: the visible turns and their recorded outputs, without thoughts, unreadable
answers and how far something is. It is read by whoever is handed the paper, so nobody in it is "you".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from agents.engine.outputs.kinds import Output as Entry
from agents.engine.outputs.kinds import ResultOutput, TextOutput, ToolOutput
from conversations.accounts.names import display_name
from conversations.display.call import call_of, displayed_result, result_text, was_cut_off
from conversations.display.export import ENDS
from conversations.display.failure import Failure, failures_of
from conversations.display.faithful import first_line
from conversations.display.rendering.sources import diagrams_in
from conversations.models import Conversation, Output, Prompt, State
from conversations.pages.timeline.activity import Activity
from conversations.pages.timeline.blocks import Block
from conversations.pages.timeline.turns import ShownOutput, TimelineTurn, build_turn, read_outputs, shown_prompts

HEAD_LINES, TAIL_LINES, LINE_MOST = 16, 8, 300
"""What is printed of the result of a call that was decided about: its first and last lines, each of so many letters."""
OWN = {"ask", "done", "activity", "file"}
"""The kinds of blocks that look different on paper: nothing in them opens, or can be decided or downloaded."""


@dataclass(frozen=True)
class PrintedCall:
    """A call that needed no decision, in one line. `outcome`: "" if it simply succeeded."""

    title: str
    line: str
    outcome: str


@dataclass(frozen=True)
class PrintedBlock:
    """A block of a turn, with the templates for paper. `calls`: the lines of an activity; `result`: a card's, short."""

    block: Block
    templates: list[str]
    calls: tuple[PrintedCall, ...] = ()
    result: str = ""


@dataclass(frozen=True)
class PrintedTurn:
    """A turn. `who` started it, and `end` says how it stands unless it is complete; `because` is why it failed.

    `sources`: those of its diagrams, in the order of the pictures.
    """

    turn: TimelineTurn
    who: str
    blocks: list[PrintedBlock]
    answered: datetime | None
    end: str
    because: str
    failure: Failure | None
    sources: list[str]

    @property
    def prompt(self) -> Prompt:
        """The stored turn."""
        return self.turn.prompt


def printable(conversation: Conversation) -> QuerySet[Prompt]:
    """Return the turns that are printed, oldest first."""
    return shown_prompts(conversation).filter(visible=True).order_by("number")


def printed_turns(prompts: Sequence[Prompt]) -> Iterator[PrintedTurn]:
    """Yield these turns as they are printed."""
    nobody = AnonymousUser()
    by_prompt: dict[int, list[ShownOutput]] = {prompt.pk: [] for prompt in prompts}
    for shown in read_outputs(list(Output.objects.of(*prompts).select_related("conversation__owner")), nobody):
        by_prompt[shown.row.prompt_id].append(shown)
    failures = failures_of(prompts, nobody)
    for prompt in prompts:
        failure = failures.get(prompt.pk)
        yield _printed(build_turn(prompt, by_prompt[prompt.pk], {}, {}, failure=failure), failure)


def _printed(turn: TimelineTurn, failure: Failure | None) -> PrintedTurn:
    prompt, blocks = turn.prompt, [printed for block in turn.blocks if (printed := _block(block))]
    because = turn.status.because if turn.status else ""
    asks = any(each.block.card and each.block.card.pending for each in blocks)
    return PrintedTurn(
        turn,
        who=display_name(prompt.starter) if prompt.starter else prompt.get_origin_display(),
        blocks=blocks,
        answered=prompt.ended_at,
        end="" if asks else ENDS.get(State(prompt.state), ""),
        because=failure.in_one_line if failure else because,
        failure=failure,
        sources=[source for block in turn.blocks for source in diagrams_in(_markdown(prompt, block.entry))],
    )


def _block(block: Block) -> PrintedBlock | None:
    """Return a block as it is printed; None if nothing of it is."""
    if block.kind == "progress":
        return None
    if block.activity:
        calls = tuple(_calls(block.activity))
        return PrintedBlock(block, _own(block), calls) if calls else None
    if block.card:
        return PrintedBlock(block, _own(block), result=_short(block.card.result))
    if block.kind in OWN:
        return PrintedBlock(block, _own(block))
    return PrintedBlock(block, block.templates)


def _short(result: str) -> str:
    """Return the first and last lines of a result, with the number of lines between them."""
    lines = [
        line if len(line) <= LINE_MOST else f"{line[:LINE_MOST]} \u2026" for line in result.strip("\n").split("\n")
    ]
    left = len(lines) - HEAD_LINES - TAIL_LINES
    if left <= 1:
        return "\n".join(lines)
    return "\n".join([*lines[:HEAD_LINES], f"\u2026 {left:,} lines are not shown \u2026", *lines[-TAIL_LINES:]])


def _own(block: Block) -> list[str]:
    return [f"conversations/print/{block.kind}.html"]


def _calls(activity: Activity) -> Iterator[PrintedCall]:
    for row in activity.rows:
        if isinstance(row.entry, ToolOutput):
            call = call_of(row.entry)
            yield PrintedCall(call.title, call.first_line, _outcome(row.entry))


def _outcome(entry: ToolOutput) -> str:
    """Return what became of a call, unless it simply succeeded."""
    if was_cut_off(entry):
        return "stopped while it ran: part of it may already have been done"
    if entry.result.type == "error":
        return f"failed: {first_line(result_text(entry))}"
    return "" if entry.result.type == "success" else "no result yet"


def _markdown(prompt: Prompt, entry: Entry | None) -> str:
    """Return what is rendered as Markdown of an output (timeline/text.html, timeline/result.html); "" if nothing is."""
    if isinstance(entry, TextOutput) and entry.role_hint != "system":
        formed = prompt.from_client.get("form") and not entry.path
        return "" if formed else entry.text
    return displayed_result(entry.output)[0] if isinstance(entry, ResultOutput) else ""
