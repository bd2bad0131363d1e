"""The timeline: what was said in each turn, and what became of it, block by block in reading order.

Each block has an id and a version: a page that has a block of this id in this version need not be sent it again. A
version is a digest of what the block shows, without relative times, which pages keep up by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from agents.engine.outputs.kinds import FileOutput, TextOutput, ToolOutput, WidgetOutput
from agents.engine.outputs.kinds import Output as Entry
from agents.engine.outputs.timeline import reading_order
from conversations.display.call import call_of, result_text
from conversations.display.gate import Card, cards
from conversations.display.json import files_of
from conversations.display.when import day
from conversations.models import Conversation, Draft, File, Output, Prompt, Redaction, State
from conversations.models.erasure import message_redacted
from conversations.pages.timeline.activity import Activity, ActivityEntry
from conversations.pages.timeline.blocks import Block, Status
from conversations.pages.timeline.drafts import Prose, RunningCommand, prose, standing
from conversations.pages.timeline.status import status_of
from conversations.pages.timeline.widgets import Widget
from conversations.pages.versions import version
from conversations.usage.totals import Spent, of_prompts

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

TURNS_MOST = 50
"""Turns on a page; older ones come when asked for."""
LULL = timedelta(hours=1)
"""A turn that begins so long after the one before, or on another day, stands under the time at which it began."""
EARLIER = {
    State.COMPLETED: "An earlier answer",
    State.FAILED: "An earlier answer, which failed",
    State.CANCELLED: "An earlier answer, stopped",
}
"""What a turn is called whose message was asked again, by how it ended."""
COLLAPSED = ("tool", "reasoning", "retry")
"""Kinds of output that are collapsed into an activity, unless somebody was asked about them."""


@dataclass(frozen=True)
class ShownOutput:
    """A stored output, read once: with its gate, or with the file that it names. `redacted`: a widget that was."""

    row: Output
    entry: Entry
    version: str
    card: Card | None = None
    file: File | None = None
    redacted: bool = False


@dataclass
class TimelineTurn:
    """A prompt with what is shown of it."""

    prompt: Prompt
    blocks: list[Block] = field(default_factory=list)
    status: Status | None = None

    @property
    def day(self) -> Block | None:
        """The day and the time, where the turn does not follow closely on another one."""
        began, before = self.prompt.created_at, getattr(self.prompt, "before", None)
        if before and began - before < LULL and day(began) == day(before):
            return None
        words = day(began, "H:i")
        return Block("day", f"b-{self.prompt.pk}-day", version(words), words=words)

    @property
    def earlier(self) -> Block | None:
        """All of it collapsed into one line, where its message was asked again."""
        if not getattr(self.prompt, "repeated", False):
            return None
        words = EARLIER.get(State(self.prompt.state), EARLIER[State.COMPLETED])
        return Block("earlier", f"t-{self.prompt.pk}-earlier", version(words, *self._whole), words=words)

    @property
    def given(self) -> list[File]:
        """The files that came with what was said."""
        return list(self.prompt.files.all())

    @property
    def said(self) -> Block:
        """What it began with."""
        prompt, given = self.prompt, [(file.pk, file.name, file.size) for file in self.given]
        said = version(prompt.input, prompt.origin, prompt.visible, prompt.repeats_id, given)
        return Block("said", f"b-{prompt.pk}-said", said)

    @property
    def agents(self) -> list[Block]:
        """Everything below what was said; the last says how the turn stands, where there is something to say."""
        if self.status is None or not self.status.shown:
            return self.blocks
        return [*self.blocks, Block("foot", f"b-{self.prompt.pk}-foot", version(self.status), status=self.status)]

    @property
    def parts(self) -> dict[str, str]:
        """Every id in it with its version."""
        return {self.earlier.id: self.earlier.version} if self.earlier else dict(self._whole)

    @property
    def _whole(self) -> list[tuple[str, str]]:
        blocks = [*([self.day] if self.day else []), self.said, *self.agents]
        return list(chain.from_iterable(block.parts for block in blocks))

    @property
    def running(self) -> list[RunningCommand]:
        """What its running commands have said so far."""
        running = [block.running for block in self.blocks]
        running += [one.running for block in self.blocks if block.activity for one in block.activity.entries]
        return [one for one in running if one]

    @property
    def slots(self) -> dict[str, str]:
        """Where the output of its running commands stands, and how much of it."""
        return {one.id: one.version for one in self.running}

    @property
    def gates(self) -> list[Card]:
        """Those that wait for a person, with those of the same answer that do not any more."""
        gates = [block.card for block in self.blocks if block.card]
        batches = {_batch(card.entry) for card in gates if card.pending}
        return [card for card in gates if _batch(card.entry) in batches]

    @property
    def waiting(self) -> list[Card]:
        """The gates that wait for a person."""
        return [block.card for block in self.blocks if block.card and block.card.pending]


def timeline(conversation: Conversation, reader: User | AnonymousUser, most: int = TURNS_MOST) -> list[TimelineTurn]:
    """The last turns of a conversation, oldest first, as this reader sees them."""
    return turns(list(shown_prompts(conversation).order_by("-number")[:most])[::-1], reader)


def shown_prompts(conversation: Conversation) -> QuerySet[Prompt]:
    """The prompts that are shown of a conversation: the visible ones, and of the others those that asked somebody.

    Each with when the one `before` it began, whether it was `repeated`: then its message was asked again, and whether
    this message is `gone`: then it cannot be.
    """
    asked = Output.objects.gates().filter(prompt=OuterRef("pk"))
    shown = conversation.prompts.filter(Q(visible=True) | Exists(asked))
    earlier = Prompt.objects.filter(conversation=OuterRef("conversation"), visible=True, number__lt=OuterRef("number"))
    before = Subquery(earlier.order_by("-number").values("created_at")[:1])
    repeated = Exists(Prompt.objects.filter(repeats=OuterRef("pk"), visible=True))
    known = shown.select_related("asked_by").prefetch_related("files")
    return known.annotate(before=before, repeated=repeated, gone=message_redacted())


def turns(prompts: Sequence[Prompt], reader: User | AnonymousUser) -> list[TimelineTurn]:
    """These prompts with all that is shown of them."""
    rows = Output.objects.visible_to(reader).filter(prompt__in=prompts).select_related("conversation__owner")
    by_prompt: dict[int, list[ShownOutput]] = {prompt.pk: [] for prompt in prompts}
    for shown in read(list(rows), reader):
        by_prompt[shown.row.prompt_id].append(shown)
    drafts, spent = standing(prompts), spent_by(prompts)
    return [
        turn(prompt, by_prompt[prompt.pk], drafts.get(prompt.pk, {}), {}, spent.get(prompt.pk)) for prompt in prompts
    ]


def spent_by(prompts: Iterable[Prompt]) -> dict[int, Spent]:
    """What those of these prompts that have ended spent."""
    return of_prompts([prompt.pk for prompt in prompts if prompt.ended and prompt.rounds])


def read(rows: Sequence[Output], reader: User | AnonymousUser) -> list[ShownOutput]:
    """These outputs as this reader sees them; names and files are looked up once for all."""
    gates = {card.row.pk: card for card in cards([row for row in rows if row.gate], reader)}
    entries = {row.pk: gates[row.pk].entry if row.pk in gates else row.entry() for row in rows}
    files = files_of(entries.values())
    redacted = _redacted([row for row in rows if _is_empty(entries[row.pk])])
    return [_shown(row, entries[row.pk], gates.get(row.pk), files, row.pk in redacted) for row in rows]


def _is_empty(entry: Entry) -> bool:
    """Whether this is a widget without data: it never had any, or was redacted."""
    return isinstance(entry, WidgetOutput) and not entry.data


def _redacted(rows: Sequence[Output]) -> set[int]:
    """Those of these outputs whose step was redacted."""
    if not rows:
        return set()
    conversations, seqs = {row.conversation_id for row in rows}, [row.position for row in rows]
    found = Redaction.objects.filter(conversation__in=conversations, seq__in=seqs)
    places = set(found.values_list("conversation", "seq"))
    return {row.pk for row in rows if (row.conversation_id, row.position) in places}


def _shown(row: Output, entry: Entry, card: Card | None, files: Mapping[int, File], redacted: bool) -> ShownOutput:
    file = files.get(entry.file) if isinstance(entry, FileOutput) else None
    seen = (card.by, card.may, card.allow, list(card.deciders)) if card else ()
    return ShownOutput(row, entry, version(row.data, seen, file and file.size), card, file, redacted)


def turn(
    prompt: Prompt,
    shown: Iterable[ShownOutput],
    drafts: Mapping[str, Draft],
    kept: dict[str, Prose],
    spent: Spent | None = None,
) -> TimelineTurn:
    """A turn from its outputs, in whatever order, and its drafts by path. `kept`: the prose that grows on, by id.

    Of one that is not visible only what somebody was asked is shown, before and after it was decided.
    """
    at = {one.entry.position: one for one in shown}
    entries = reading_order(one.entry for one in at.values())
    last = _last_words(entries) if prompt.state == State.FAILED else None
    blocks = list(_blocks(prompt, [at[entry.position] for entry in entries if entry is not last], drafts))
    if not prompt.visible:
        blocks = [block for block in blocks if block.card]
        waits = any(block.card.pending for block in blocks if block.card)
        return TimelineTurn(prompt, blocks, status_of(prompt, entries, blocks) if waits else None)
    if prompt.stop_reason == "terminate" and (came := _came(prompt, entries)):
        blocks.append(came)
    if not prompt.ended:
        calls = {entry.path for entry in entries if isinstance(entry, ToolOutput)}
        blocks += [_prose(prose(draft, kept)) for path, draft in drafts.items() if path not in calls]
    status = status_of(prompt, entries, blocks, last.text if last else "", spent)
    if status.activity is not None and (activity := blocks[status.activity].activity):
        blocks[status.activity] = _activity_block(Activity(activity.id, activity.entries, working=True))
    return TimelineTurn(prompt, blocks, status)


def _last_words(entries: Sequence[Entry]) -> TextOutput | None:
    """What the system says of a failure; it then stands nowhere else."""
    return next((e for e in reversed(entries) if isinstance(e, TextOutput) and e.role_hint == "system"), None)


def _came(prompt: Prompt, entries: Sequence[Entry]) -> Block | None:
    """What the last call came to, where that is the answer: nothing else says it."""
    last = next((e for e in reversed(entries) if isinstance(e, ToolOutput) and e.result.type == "success"), None)
    words = result_text(last) if last else ""
    if last is None or not words:
        return None
    return Block("came", f"b-{prompt.pk}-came", version(words), words=words, call=call_of(last))


def _blocks(prompt: Prompt, shown: Sequence[ShownOutput], drafts: Mapping[str, Draft]) -> Iterator[Block]:
    """A gate, a text, a file stand by themselves; calls and thoughts side by side are collapsed into an activity."""
    places, tries = _places(shown), _tries(shown)
    collapsed: list[ShownOutput] = []
    for one in shown:
        if one.card is None and one.entry.type in COLLAPSED:
            collapsed.append(one)
            continue
        if collapsed:
            yield _collapsed(prompt, collapsed, drafts, tries)
            collapsed = []
        yield _block(prompt, one, drafts, *places.get(one.entry.position, (0, 0)))
    if collapsed:
        yield _collapsed(prompt, collapsed, drafts, tries)


def _places(shown: Iterable[ShownOutput]) -> dict[int, tuple[int, int]]:
    """Of each gate its number among those of the same answer, and how many these are."""
    batches: dict[str, list[int]] = {}
    for one in shown:
        if one.card:
            batches.setdefault(_batch(one.entry), []).append(one.entry.position)
    return {at: (n, len(batch)) for batch in batches.values() for n, at in enumerate(batch, 1)}


def _tries(shown: Iterable[ShownOutput]) -> dict[int, int]:
    """Of each answer that could not be read, the how many-eth in a row it was."""
    found: dict[int, int] = {}
    row = 0
    for one in shown:
        row = row + 1 if one.entry.type == "retry" else row if one.entry.type == "reasoning" else 0
        if one.entry.type == "retry":
            found[one.entry.position] = row
    return found


def _batch(entry: Entry) -> str:
    """The path of the answer that asked for this call."""
    return entry.path.rpartition("/")[0]


def _block(prompt: Prompt, one: ShownOutput, drafts: Mapping[str, Draft], number: int, of: int) -> Block:
    kind, entry = one.entry.type, one.entry
    if one.card:
        kind = "ask" if one.card.pending else "done"
    return Block(
        kind,
        f"b-{prompt.pk}-{entry.position}",
        version(one.version, number, of),
        entry,
        one.card,
        one.file,
        Widget(entry.widget, entry.data, entry.fallback, one.redacted) if isinstance(entry, WidgetOutput) else None,
        _running(prompt, entry, drafts),
        number,
        of,
    )


def _collapsed(
    prompt: Prompt, shown: Sequence[ShownOutput], drafts: Mapping[str, Draft], tries: Mapping[int, int]
) -> Block:
    rows = [
        ActivityEntry(one.entry, one.version, _running(prompt, one.entry, drafts), tries.get(one.entry.position, 0))
        for one in shown
    ]
    return _activity_block(Activity(f"b-{prompt.pk}-{shown[0].entry.position}", rows))


def _activity_block(activity: Activity) -> Block:
    return Block("activity", activity.id, activity.version, activity=activity)


def _prose(draft: Prose) -> Block:
    return Block("prose", draft.id, draft.version, prose=draft)


def _running(prompt: Prompt, entry: Entry, drafts: Mapping[str, Draft]) -> RunningCommand | None:
    """What a call that runs has said so far."""
    if not isinstance(entry, ToolOutput) or entry.result.type != "running":
        return None
    return RunningCommand.of(prompt.pk, entry.path, drafts.get(entry.path))
