"""The timeline: each turn, from its message to its outcome, as blocks in reading order.

Each block has an id and a version, so that a page that has the block in this version need not be sent it again. A
version is a digest of what the block shows, without relative times, which pages update themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from itertools import chain, groupby

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Case, Count, Exists, OuterRef, Q, QuerySet, Subquery, When

from agents.engine.outputs.kinds import FileOutput, ProgressOutput, ToolOutput, WidgetOutput
from agents.engine.outputs.kinds import Output as Entry
from agents.engine.outputs.timeline import reading_order
from agents.engine.paths import is_progress, progress
from agents.engine.root import AGENT
from agents.plugins.blueprints.plugin import Named
from conversations.display.call import DisplayedCall, call_of, display_call, result_text
from conversations.display.cards import cards
from conversations.display.failure import Failure, failures_of, site_notice
from conversations.display.gate import Card
from conversations.display.shapes.outputs import files_of
from conversations.display.stood import stood_in
from conversations.display.when import day
from conversations.models import (
    Conversation,
    Draft,
    File,
    Firing,
    FiringState,
    Origin,
    Output,
    Prompt,
    Redaction,
    State,
    Step,
)
from conversations.models.erasure import message_redacted
from conversations.pages.timeline.activity import Activity, ActivityRow
from conversations.pages.timeline.blocks import Block, Status
from conversations.pages.timeline.drafts import Prose, RunningCommand, draft_id, drafts_of, grow_prose
from conversations.pages.timeline.status import status_of
from conversations.pages.versions import version
from conversations.prompts import startable
from conversations.usage.totals import Spent, of_prompts

TURNS_MOST = 50
"""Turns on a page; older ones are loaded on request."""
LULL = timedelta(hours=1)
"""A turn that starts this long after the previous one, or on another day, has its start time above it."""
EARLIER = {
    State.COMPLETED: "An earlier answer",
    State.FAILED: "An earlier answer, which failed",
    State.CANCELLED: "An earlier answer, stopped",
}
"""What to call a turn whose message was repeated, by how it ended."""
COLLAPSED = ("tool", "reasoning", "retry")
"""The kinds of output that are collapsed into an activity, unless a person was asked about them."""


@dataclass(frozen=True)
class ShownOutput:
    """A stored output with its card or its file, looked up once. `redacted`: its step was redacted (widgets only)."""

    row: Output
    entry: Entry
    version: str
    card: Card | None = None
    file: File | None = None
    redacted: bool = False


@dataclass
class TimelineTurn:
    """A prompt, with everything that is shown of it."""

    prompt: Prompt
    blocks: list[Block] = field(default_factory=list)
    status: Status | None = None

    @property
    def day(self) -> Block | None:
        """The day and time of the turn, unless it follows closely on another."""
        began, before = self.prompt.created_at, getattr(self.prompt, "before", None)
        if before and began - before < LULL and day(began) == day(before):
            return None
        words = day(began, "H:i")
        return Block("day", f"b-{self.prompt.pk}-day", version(words), words=words)

    @property
    def earlier(self) -> Block | None:
        """The whole turn collapsed into one line, if its message was repeated."""
        if not getattr(self.prompt, "repeated", False):
            return None
        words = EARLIER.get(State(self.prompt.state), EARLIER[State.COMPLETED])
        return Block("earlier", f"t-{self.prompt.pk}-earlier", version(words, *self._whole), words=words)

    @property
    def said(self) -> Block:
        """The message that started the turn."""
        prompt, given = self.prompt, [(file.pk, file.name, file.size) for file in self.prompt.files.all()]
        called = (self.called.title, self.called.fields) if self.called else None
        folded = getattr(prompt, "folded", None)
        said = version(prompt.input, prompt.origin, prompt.visible, prompt.repeats_id, given, called, folded)
        return Block("said", f"b-{prompt.pk}-said", said)

    @cached_property
    def called(self) -> DisplayedCall | None:
        """The policy that runs in place of the agent, with its payload, as far as the message does not say it."""
        root: str | None = getattr(self.prompt, "root", None)
        if root is None:
            return None
        payload, started = json.loads(root)["payload"], startable.found_or_none(self.prompt.policy)
        given = started.given(payload) if started else payload
        shown = {name: value for name, value in given.items() if value != self.prompt.input}
        return display_call(self.prompt.policy, shown, schema=started.schema if started else None)

    @property
    def again(self) -> str:
        """The address of the form with which it is started again; "" if it is asked again as it is."""
        return startable.again_at(self.prompt.policy, self.prompt.pk) if self.prompt.policy != AGENT else ""

    @property
    def agents(self) -> list[Block]:
        """All blocks after the message. The last one is the status, if there is anything to show."""
        if self.status is None or not self.status.shown:
            return self.blocks
        return [*self.blocks, Block("foot", f"b-{self.prompt.pk}-foot", version(self.status), status=self.status)]

    @property
    def lasts(self) -> bool:
        """Whether it looks the same as long as its parts have their versions."""
        return self.prompt.ended and self.earlier is None and all(block.lasts for block in self.agents)

    @property
    def parts(self) -> dict[str, str]:
        """Every id in the turn, with its version."""
        return {self.earlier.id: self.earlier.version} if self.earlier else dict(self._whole)

    @property
    def _whole(self) -> list[tuple[str, str]]:
        blocks = [*([self.day] if self.day else []), self.said, *self.agents]
        return list(chain.from_iterable(block.parts for block in blocks))

    @property
    def running(self) -> list[RunningCommand]:
        """The output so far of the running commands."""
        running = [block.running for block in self.blocks]
        running += [one.running for block in self.blocks if block.activity for one in block.activity.rows]
        return [one for one in running if one]

    @property
    def gates(self) -> list[Card]:
        """The gates that wait for a person, and the decided ones of the same answers."""
        gates = [block.card for block in self.blocks if block.card]
        batches = {_batch(card.entry) for card in gates if card.pending}
        return [card for card in gates if _batch(card.entry) in batches]


def timeline(conversation: Conversation, reader: User | AnonymousUser, most: int = TURNS_MOST) -> list[TimelineTurn]:
    """Return the last turns of a conversation, oldest first, as this reader sees them."""
    return build_turns(list(shown_prompts(conversation).order_by("-number")[:most])[::-1], reader)


def shown_prompts(conversation: Conversation) -> QuerySet[Prompt]:
    """Return the prompts shown of a conversation: the visible ones, and hidden ones that asked a person something.

    Each is annotated with `before`, when the previous one started; `repeated`, whether its message was asked again;
    `gone`, whether its message was redacted and cannot be asked again; `root`, the payload of the call with which the
    turn of a policy other than the agent began; and `folded`, how often its trigger was due again while it waited.
    """
    asked = Output.objects.gates().filter(conversation=conversation, prompt=OuterRef("pk"))
    shown = conversation.prompts.filter(Q(visible=True) | Exists(asked))
    earlier = Prompt.objects.filter(conversation=OuterRef("conversation"), visible=True, number__lt=OuterRef("number"))
    before = Subquery(earlier.order_by("-number").values("created_at")[:1])
    repeated = Exists(Prompt.objects.filter(repeats=OuterRef("pk"), visible=True))
    calls = Step.objects.filter(conversation=conversation, prompt=OuterRef("pk"), path="", type="action_call")
    root = Case(When(~Q(policy=AGENT), then=Subquery(calls.values("payload")[:1])))
    again = Firing.objects.filter(prompt=OuterRef("pk"), state=FiringState.FOLDED).order_by()
    folded = Case(
        When(origin=Origin.TRIGGER, then=Subquery(again.values("prompt").annotate(n=Count("pk")).values("n")))
    )
    known = shown.select_related("asked_by").prefetch_related("files")
    return known.annotate(before=before, repeated=repeated, gone=message_redacted(), root=root, folded=folded)


def build_turns(prompts: Sequence[Prompt], reader: User | AnonymousUser) -> list[TimelineTurn]:
    """Return these prompts as turns, with their blocks."""
    drafts = drafts_of(prompts)  # before outputs, as `build_turn` wants them
    rows, known = list(Output.objects.visible_to(reader).of(*prompts)), {prompt.pk: prompt for prompt in prompts}
    for row in rows:  # a join would read the same conversation again with each
        row.prompt, row.conversation = known[row.prompt_id], known[row.prompt_id].conversation
    by_prompt: dict[int, list[ShownOutput]] = {prompt.pk: [] for prompt in prompts}
    for shown in read_outputs(rows, reader):
        by_prompt[shown.row.prompt_id].append(shown)
    spent, failures, stood = spent_by(prompts), failures_of(prompts, reader), stood_in(prompts)
    return [
        build_turn(
            prompt,
            by_prompt[pk],
            drafts.get(pk, {}),
            {},
            spent=spent.get(pk),
            failure=failures.get(pk),
            stood=stood.get(pk, ()),
        )
        for prompt in prompts
        for pk in [prompt.pk]
    ]


def spent_by(prompts: Iterable[Prompt]) -> dict[int, Spent]:
    """Return the usage of those of these prompts that have ended."""
    asked = [prompt for prompt in prompts if prompt.ended and prompt.rounds]
    return of_prompts({prompt.conversation_id for prompt in asked}, [prompt.pk for prompt in asked])


def read_outputs(rows: Sequence[Output], reader: User | AnonymousUser) -> list[ShownOutput]:
    """Return these outputs as this reader sees them. Names and files are looked up once for all."""
    gated = cards([row for row in rows if row.gate], reader, helps=reader.is_authenticated)
    gates = {card.row.pk: card for card in gated}
    entries = {row.pk: gates[row.pk].entry if row.pk in gates else row.entry() for row in rows}
    files = files_of(entries.values())
    redacted = _redacted([row for row in rows if _is_empty(entries[row.pk])])
    return [_shown(row, entries[row.pk], gates.get(row.pk), files, row.pk in redacted) for row in rows]


def _is_empty(entry: Entry) -> bool:
    """Whether this is a widget without data: it never had any, or it was redacted."""
    return isinstance(entry, WidgetOutput) and not entry.data


def _redacted(rows: Sequence[Output]) -> set[int]:
    """Return the ids of the outputs whose step was redacted."""
    if not rows:
        return set()
    conversations, seqs = {row.conversation_id for row in rows}, [row.position for row in rows]
    found = Redaction.objects.filter(conversation__in=conversations, seq__in=seqs)
    places = set(found.values_list("conversation", "seq"))
    return {row.pk for row in rows if (row.conversation_id, row.position) in places}


def _shown(row: Output, entry: Entry, card: Card | None, files: Mapping[int, File], redacted: bool) -> ShownOutput:
    file = files.get(entry.file) if isinstance(entry, FileOutput) else None
    seen = (card.by, card.editor, card.may, card.allow, list(card.deciders)) if card else ()
    return ShownOutput(row, entry, version(row.data, seen, file and file.size), card, file, redacted)


def build_turn(
    prompt: Prompt,
    outputs: Iterable[ShownOutput],
    drafts: Mapping[str, Draft],
    kept: dict[str, Prose],
    *,
    spent: Spent | None = None,
    failure: Failure | None = None,
    stood: tuple[Named, ...] = (),
) -> TimelineTurn:
    """Build a turn from its outputs, in any order, and its drafts by path. `kept`: prose to extend, by id.
    `stood`: the blueprints in its rounds.

    The drafts were read first: a text that is recorded between the two reads would otherwise be in neither. Where it is
    in both, the output is shown.

    Of a hidden turn only its gates are shown, waiting and decided ones.
    """
    at = {one.entry.position: one for one in outputs}
    entries = reading_order(one.entry for one in at.values())
    last = site_notice(entries) if prompt.state == State.FAILED else None
    shown = [_as_of_now(at[entry.position], drafts) for entry in entries if entry is not last]
    blocks = list(_blocks(prompt, shown, drafts))
    if not prompt.visible:
        blocks = [block for block in blocks if block.card]
        waits = any(block.card.pending for block in blocks if block.card)
        return TimelineTurn(prompt, blocks, status_of(prompt, entries, blocks) if waits else None)
    if prompt.stop_reason == "terminate" and (came := _final_result(prompt, entries)):
        blocks.append(came)
    if not prompt.ended:
        recorded = {entry.path for entry in entries}  # answers, and calls, which show their drafts themselves
        texts = {path: draft for path, draft in drafts.items() if path not in recorded and not is_progress(path)}
        blocks += [_prose(grow_prose(draft, kept)) for draft in texts.values()]
        told = {progress(entry.path) for entry in entries if isinstance(entry, ProgressOutput)}
        blocks += [_progress(draft) for path, draft in drafts.items() if is_progress(path) and path not in told]
    status = status_of(prompt, entries, blocks, last.text if last else "", spent=spent, failure=failure)
    status = replace(status, stood=stood) if stood else status
    if status.activity is not None and (activity := blocks[status.activity].activity):
        blocks[status.activity] = _activity_block(Activity(activity.id, activity.rows, working=True))
    return TimelineTurn(prompt, blocks, status)


def _as_of_now(one: ShownOutput, drafts: Mapping[str, Draft]) -> ShownOutput:
    """Return an output as it is by now: how far a policy is may be known better than it is recorded."""
    entry = one.entry
    if not isinstance(entry, ProgressOutput) or (draft := drafts.get(progress(entry.path))) is None:
        return one
    if draft.attempt <= entry.said:
        return one
    return replace(one, entry=entry.model_copy(update=json.loads(draft.text)), version=version(draft.text))


def _final_result(prompt: Prompt, entries: Sequence[Entry]) -> Block | None:
    """Return the result of the last call as a block, if that is the answer: nothing else shows it."""
    last = next((e for e in reversed(entries) if isinstance(e, ToolOutput) and e.result.type == "success"), None)
    words = result_text(last) if last else ""
    if last is None or not words:
        return None
    return Block("came", f"b-{prompt.pk}-came", version(words), words=words, call=call_of(last))


def _blocks(prompt: Prompt, shown: Sequence[ShownOutput], drafts: Mapping[str, Draft]) -> Iterator[Block]:
    """Yield the blocks: a gate, text or file on its own; neighbouring calls and reasoning as one activity."""
    places, tries = _numbers_in_batch(shown), _retry_numbers(shown)
    for collapsed, group in groupby(shown, lambda one: one.card is None and one.entry.type in COLLAPSED):
        if collapsed:
            yield _collapsed(prompt, list(group), drafts, tries)
        else:
            yield from (_block(prompt, one, drafts, *places.get(one.entry.position, (0, 0))) for one in group)


def _numbers_in_batch(shown: Iterable[ShownOutput]) -> dict[int, tuple[int, int]]:
    """Return the number of each gate among those of the same answer, and how many these are."""
    batches: dict[str, list[int]] = {}
    for one in shown:
        if one.card:
            batches.setdefault(_batch(one.entry), []).append(one.entry.position)
    return {at: (n, len(batch)) for batch in batches.values() for n, at in enumerate(batch, 1)}


def _retry_numbers(shown: Iterable[ShownOutput]) -> dict[int, int]:
    """Return the number of each unreadable answer in a row of such answers, from 1."""
    found: dict[int, int] = {}
    row = 0
    for one in shown:
        row = row + 1 if one.entry.type == "retry" else row if one.entry.type == "reasoning" else 0
        if one.entry.type == "retry":
            found[one.entry.position] = row
    return found


def _batch(entry: Entry) -> str:
    """Return the path of the answer that asked for this call."""
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
        one.redacted,
        _running(prompt, entry, drafts),
        number,
        of,
    )


def _collapsed(
    prompt: Prompt, shown: Sequence[ShownOutput], drafts: Mapping[str, Draft], tries: Mapping[int, int]
) -> Block:
    name = f"b-{prompt.pk}-{shown[0].entry.position}"
    rows = [
        ActivityRow(f"{name}-{at}", one.version, one.entry, _running(prompt, one.entry, drafts), tries.get(at, 0))
        for one in shown
        for at in [one.entry.position]
    ]
    return _activity_block(Activity(name, rows))


def _activity_block(activity: Activity) -> Block:
    return Block("activity", activity.id, activity.version, activity=activity)


def _prose(draft: Prose) -> Block:
    return Block("prose", draft.id, draft.version, prose=draft)


def _progress(draft: Draft) -> Block:
    """Return how far a policy is, before any of it is recorded."""
    entry = ProgressOutput.model_validate(json.loads(draft.text))
    return Block("progress", draft_id(draft.prompt_id, draft.path), version(draft.text), entry)


def _running(prompt: Prompt, entry: Entry, drafts: Mapping[str, Draft]) -> RunningCommand | None:
    """Return the output so far of a running call."""
    if not isinstance(entry, ToolOutput) or entry.result.type != "running":
        return None
    return RunningCommand.of(prompt.pk, entry.path, drafts.get(entry.path))
