"""The timeline: what was said in each turn, and what became of it, block by block in reading order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agents.engine.outputs import Output as Entry
from agents.engine.outputs import TextOutput, ToolOutput, reading_order
from conversations.models import Conversation, Output, Prompt, State
from conversations.pages.steps import Steps
from conversations.shown.gate import Card, cards

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

TURNS_MOST = 50
"""Turns on a page; older ones come when asked for."""

FAILURES = {
    "max_rounds": "It used all the rounds it was given.",
    "timeout": "It ran as long as it was allowed to.",
    "parse_failures": "The model's answers could not be read.",
    "model_error": "The model did not answer.",
    "internal_error": "Something in this site went wrong.",
    "crash_loop": "The worker was lost again and again at the same place.",
}
"""Why a turn failed, where the turn itself does not say."""


@dataclass(frozen=True)
class Block:
    """One block of a turn. A kind of output that has no template of its own is shown by `other.html`."""

    kind: str
    entry: Entry | None = None
    card: Card | None = None
    steps: Steps | None = None

    @property
    def templates(self) -> list[str]:
        """The template, and the one to take where there is none."""
        return [f"conversations/timeline/{self.kind}.html", "conversations/timeline/other.html"]


@dataclass
class Turn:
    """A prompt with what is shown of it. `failure` says why it failed, "" if it did not."""

    prompt: Prompt
    blocks: list[Block] = field(default_factory=list)
    failure: str = ""

    @property
    def waiting(self) -> list[Card]:
        """The gates that wait for a person."""
        return [block.card for block in self.blocks if block.card and block.card.pending]

    @property
    def working(self) -> bool:
        """Whether it runs or is about to."""
        return self.prompt.state in (State.QUEUED, State.RUNNING)

    @property
    def tokens(self) -> str:
        """How many tokens it took, "" for none."""
        used = self.prompt.input_tokens + self.prompt.output_tokens
        return f"{used:,}" if used else ""

    @property
    def finished(self) -> int:
        """How many calls came to a result, which a failure does not undo."""
        found = [entry for block in self.blocks for entry in (block.steps.entries if block.steps else [block.entry])]
        return sum(isinstance(entry, ToolOutput) and entry.result.type == "success" for entry in found)


def timeline(conversation: Conversation, reader: User | AnonymousUser, most: int = TURNS_MOST) -> list[Turn]:
    """The last turns of a conversation, oldest first, as this reader sees them."""
    newest = conversation.prompts.filter(visible=True).select_related("asked_by").order_by("-number")[:most]
    prompts = list(newest)[::-1]
    rows = Output.objects.visible_to(reader).filter(prompt__in=prompts).select_related("conversation__owner")
    by_prompt: dict[int, list[Output]] = {prompt.pk: [] for prompt in prompts}
    for row in rows:
        by_prompt[row.prompt_id].append(row)
    gates = {card.row.pk: card for card in cards([row for row in rows if row.gate], reader)}
    return [_turn(prompt, by_prompt[prompt.pk], gates) for prompt in prompts]


def _turn(prompt: Prompt, rows: Sequence[Output], gates: dict[int, Card]) -> Turn:
    at = {row.position: gates[row.pk] for row in rows if row.pk in gates}
    entries = reading_order(row.entry() for row in rows)
    failure = ""
    if prompt.state == State.FAILED:
        failure, entries = _failure(prompt, entries)
    return Turn(prompt, list(_blocks(entries, at)), failure)


def _blocks(entries: Iterable[Entry], gates: dict[int, Card]) -> Iterable[Block]:
    """A gate, a text, a file stand by themselves; calls and thoughts side by side are folded into steps."""
    folded: list[Entry] = []
    for entry in entries:
        if entry.position not in gates and entry.type in ("tool", "reasoning", "retry"):
            folded.append(entry)
            continue
        if folded:
            yield Block("steps", steps=Steps(folded))
            folded = []
        if card := gates.get(entry.position):
            yield Block("ask" if card.pending else "done", entry, card)
        else:
            yield Block(entry.type, entry)
    if folded:
        yield Block("steps", steps=Steps(folded))


def _failure(prompt: Prompt, entries: list[Entry]) -> tuple[str, list[Entry]]:
    """Why it failed, in the system's last words, which then stand nowhere else; the entries without them."""
    last = next((e for e in reversed(entries) if isinstance(e, TextOutput) and e.role_hint == "system"), None)
    if last is None:
        return FAILURES.get(prompt.stop_reason, "It ended before it was done."), entries
    return last.text, [entry for entry in entries if entry is not last]
