"""Live updates of the chat page: HTML fragments by id and version, which bring an open page to what a reload shows.

A frame contains each turn as the list of its blocks. Blocks that the page already has in this version are only
named; a page that lacks one of them asks for everything. `data-seq` is the step up to which a frame is complete,
`data-after` the step from which on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.template.loader import render_to_string

from agents.engine.paths import is_progress, parent
from agents.plugins.blueprints.plugin import Named
from conversations.database.disk import is_short
from conversations.database.erasable_cache import annotate_removed
from conversations.database.ids import row_id
from conversations.display.failure import Failure, failures_of
from conversations.display.html_cache import use_html_cache
from conversations.display.stood import stood_in
from conversations.models import Conversation, Draft, Output, Prompt, Redaction, Step
from conversations.pages.chat.choosing import annotate_choice
from conversations.pages.chat.composer import Composer
from conversations.pages.chat.dock import Dock
from conversations.pages.sidebar import sidebar
from conversations.pages.timeline.drafts import Prose, RunningCommand, draft_id, drafts_of, grow_prose
from conversations.pages.timeline.turns import (
    TURNS_MOST,
    ShownOutput,
    TimelineTurn,
    build_turn,
    build_turns,
    read_outputs,
    shown_prompts,
    spent_by,
)
from conversations.usage.totals import Spent

PATHS_MOST = 200
"""The maximum number of paths that are queried by name; above it the whole turn is read."""


@dataclass
class CachedTurn:
    """A turn that is still changing: its outputs by position, up to the step `seq`."""

    seq: int
    shown: dict[int, ShownOutput] = field(default_factory=dict)


class LivePage:
    """One conversation as its open pages show it. Renders only what changed since the last call."""

    def __init__(self, conversation_id: int) -> None:
        self._id = conversation_id
        self._seq: int | None = None
        self._cache: dict[int, CachedTurn] = {}
        self._has: dict[int, dict[str, str]] = {}  # the versions sent, by prompt and id; those of the dock are under 0
        self._prose: dict[str, Prose] = {}
        self._told: dict[int, tuple[int, int]] = {}  # the last progress that was sent, by its draft: fence and attempt
        self._unplaced: set[str] = set()  # the ids of drafts that have no place on the page
        self._collapsed: set[int | None] = set()  # turns that were sent collapsed, because another one repeats them

    def changed(self, prompts: Collection[int]) -> str:
        """Render what changed in these turns since the last call; "" if nothing did."""
        conversation = _conversation(self._id)
        if conversation is None:
            return ""
        self._unplaced.clear()
        return self._frame(conversation, set(prompts))

    def drafted(self) -> str:
        """Render what was added to drafts since the last call; "" if nothing was."""
        drafts = list(Draft.objects.filter(conversation=self._id).order_by("pk"))
        grown = [(draft, self._growth_html(draft)) for draft in drafts]
        new = [draft for draft, html in grown if html is None]
        conversation = _conversation(self._id) if new else None
        if conversation is None:
            return "".join(html or "" for _, html in grown)
        frame = self._frame(conversation, {draft.prompt_id for draft in new})
        placed = [draft for draft in new if not is_progress(draft.path)]
        names = [(draft.prompt_id, draft_id(draft.prompt_id, draft.path)) for draft in placed]
        self._unplaced |= {name for prompt, name in names if name not in self._has.get(prompt, {})}
        return "".join([*(html or "" for _, html in grown), frame])

    def _growth_html(self, draft: Draft) -> str | None:
        """Render what was added to one draft; None if it has no place on the page yet, or says how far a policy is."""
        if is_progress(draft.path):
            newer = self._told.get(draft.pk) != (draft.fence, draft.attempt)
            self._told[draft.pk] = (draft.fence, draft.attempt)
            return None if newer else ""
        name, has = draft_id(draft.prompt_id, draft.path), self._has.get(draft.prompt_id, {})
        if name not in has:
            return "" if name in self._unplaced else None
        if name not in self._prose:
            running = RunningCommand.of(draft.prompt_id, draft.path, draft)
            if has[name] == running.version:
                return ""
            has[name] = running.version
            return render_to_string("conversations/timeline/running.html", {"running": running, "oob": True})
        text = grow_prose(draft, self._prose)
        first, pieces = text.since(has)
        if not pieces:
            return ""
        has.update(text.parts)
        has[name] = text.version
        grown = {"prose": text, "first": first, "pieces": pieces, "oob": True}
        return render_to_string("conversations/timeline/grown.html", grown)

    def _frame(self, conversation: Conversation, wanted: set[int]) -> str:
        """Render these turns and the dock, as far as that was not sent yet."""
        # Without the HTML cache: outputs that are kept here may be older than a redaction.
        active = conversation.active_prompt_id
        shown = wanted | ({active} if active else set())
        prompts = _prompts(conversation, shown)
        if collapsed := {prompt.repeats_id for prompt in prompts if prompt.repeats_id} - self._collapsed:
            self._collapsed |= collapsed
            wanted = wanted | collapsed
            prompts = _prompts(conversation, shown | collapsed)
        drafts, spent, failures = drafts_of(prompts), spent_by(prompts), failures_of(prompts, conversation.owner)
        stood = stood_in(prompts)
        made = {
            pk: self._turn(
                conversation,
                prompt,
                drafts.get(pk, {}),
                spent=spent.get(pk),
                failure=failures.get(pk),
                stood=stood.get(pk, ()),
            )
            for prompt in prompts
            for pk in [prompt.pk]
        }
        sent = [made[prompt.pk] for prompt in prompts if prompt.pk in wanted]
        dock = Dock.of(conversation, made.get(active or 0), _last(conversation))
        if conversation.seq != self._seq:
            # The answer to a form post may have shown a dock in between that was never sent from here: a short turn
            # begins and ends between two frames, and the dock is what it was before.
            self._has.pop(0, None)
        has = {name: version for parts in self._has.values() for name, version in parts.items()}
        html = _render(conversation, sent, dock, has, after=self._seq)
        self._seq = conversation.seq
        self._has[0] = {part.id: part.version for part in dock.parts.values()}
        for one in sent:
            self._remember(one)
        return html

    def _turn(
        self,
        conversation: Conversation,
        prompt: Prompt,
        drafts: Mapping[str, Draft],
        *,
        spent: Spent | None,
        failure: Failure | None,
        stood: tuple[Named, ...],
    ) -> TimelineTurn:
        kept = self._cache.get(prompt.pk)
        rows, seq = Output.objects.of(prompt).select_related("conversation__owner"), conversation.seq
        if kept is not None:
            steps = list(Step.objects.of(prompt).filter(seq__gt=kept.seq).values_list("seq", "path"))
            seq = max([kept.seq, *(seq for seq, _ in steps)])
            paths = {path for _, path in steps} | {parent(path) for _, path in steps if path}
            rows = rows.filter(path__in=paths) if len(paths) <= PATHS_MOST else rows
        found = read_outputs(list(rows), conversation.owner)
        kept = self._cache.setdefault(prompt.pk, CachedTurn(seq))
        kept.seq = seq  # only now: if reading failed, the next call reads it again
        kept.shown |= {one.entry.position: one for one in found}
        return build_turn(prompt, kept.shown.values(), drafts, self._prose, spent=spent, failure=failure, stood=stood)

    def _remember(self, turn: TimelineTurn) -> None:
        """Remember what pages now have; forget it for a turn that has ended."""
        number = turn.prompt.pk
        if not turn.prompt.ended:
            self._has[number] = turn.parts | {one.id: one.version for one in turn.running}
            return
        self._cache.pop(number, None)
        self._has.pop(number, None)
        for name in [name for name in self._prose if name.startswith(f"d-{number}-")]:
            del self._prose[name]


def catch_up(conversation_id: int, after: int) -> tuple[str, int]:
    """Render what a page at the step `after` lacks. Returns the HTML and the seq that the page is then at.

    With `after` 0: everything that a new page shows. Turns with redacted steps are always included: they may have been
    redacted while the page was away, and no step says so. If the conversation is gone, returns ("", after).
    """
    conversation = _conversation(conversation_id, for_cache=True)
    if conversation is None:
        return "", after
    return _render_turns(conversation, _changed(conversation, after) | _redacted(conversation)), conversation.seq


def fragment(user: User, conversation: Conversation, after: int = 0) -> str:
    """Render the answer to a form post: what changed in the conversation since the step `after`, and the list.

    Redactions are not included; the page gets them through its socket, at once or when it reconnects.
    """
    current = _conversation(conversation.pk, for_cache=True)
    return (_render_turns(current, _changed(current, after)) if current else "") + list_html(user.pk)


def list_html(user_id: int, disk_full: bool | None = None) -> str:
    """Render what every page of a user has: the list, the data for title and icon, and the notices to everybody.

    `disk_full`: whether the disk is full, if the caller knows; None to check.
    """
    user = User.objects.get(pk=user_id)
    full = is_short() if disk_full is None else disk_full
    context = {"sidebar": sidebar(user), "disk_full": full, "oob": True}
    return render_to_string("conversations/list.html", context)


def page_seq(request: HttpRequest) -> int:
    """Return the step that the posting page is at, from its X-Seq header; 0 if it does not say."""
    return row_id(request.headers.get("X-Seq", "")) or 0


def answer_html(composer: Composer) -> str:
    """Render the composer's answer to a form post: why the message was refused, and a new key if it needs one."""
    return render_to_string("conversations/answer.html", {"composer": composer, "oob": True})


def _render_turns(conversation: Conversation, changed: set[int]) -> str:
    """Render these turns whole, the turns they repeat, and those parts of the active turn that no step records."""
    active = conversation.active_prompt_id
    changed = changed | _repeated(changed)
    wanted = changed | ({active} if active else set())
    shown = build_turns(_prompts(conversation, wanted), conversation.owner)
    has = {name: version for one in shown if one.prompt.pk not in changed for name, version in _recorded(one).items()}
    dock = Dock.of(conversation, next((one for one in shown if one.prompt.pk == active), None), _last(conversation))
    with use_html_cache(conversation):
        return _render(conversation, shown, dock, has)


def _conversation(pk: int, *, for_cache: bool = False) -> Conversation | None:
    """Return the conversation; None if it is gone. `for_cache`: what is read after it may be rendered once for all."""
    found = annotate_choice(Conversation.objects.select_related("owner", "active_prompt").filter(pk=pk))
    return (annotate_removed(found) if for_cache else found).first()


def _prompts(conversation: Conversation, wanted: Iterable[int]) -> list[Prompt]:
    """Return those of these prompts that are shown, in order."""
    return list(shown_prompts(conversation).filter(pk__in=list(wanted)).order_by("number"))


def _changed(conversation: Conversation, after: int) -> set[int]:
    """Return the prompts with steps after this one; for a new page all that it shows."""
    if 0 < after <= conversation.seq:
        return set(conversation.steps.filter(seq__gt=after).values_list("prompt", flat=True))
    return _newest(conversation)


def _redacted(conversation: Conversation) -> set[int]:
    """Return the prompts of a new page that have redacted steps."""
    seqs = Redaction.objects.filter(conversation=conversation).values("seq")
    redacted = set(conversation.steps.filter(seq__in=seqs).values_list("prompt", flat=True))
    return redacted & _newest(conversation) if redacted else redacted


def _newest(conversation: Conversation) -> set[int]:
    """Return the prompts that a new page shows."""
    newest = shown_prompts(conversation).order_by("-number").values_list("pk", flat=True)
    return set(newest[:TURNS_MOST])


def _repeated(prompts: Collection[int]) -> set[int]:
    """Return the turns that these repeat."""
    asking = Prompt.objects.filter(pk__in=list(prompts), visible=True).exclude(repeats=None)
    return {pk for pk in asking.values_list("repeats", flat=True) if pk is not None}


def _last(conversation: Conversation) -> Prompt | None:
    return conversation.prompts.filter(visible=True).order_by("-number").first()


def _recorded(turn: TimelineTurn) -> dict[str, str]:
    """Return the parts made by steps, i.e. all but the drafts: a page that has seen those steps has them."""
    drafts = {name for block in turn.blocks if block.prose for name, _ in block.parts}
    return {name: version for name, version in turn.parts.items() if name not in drafts}


def _render(
    conversation: Conversation,
    shown: Sequence[TimelineTurn],
    dock: Dock,
    has: Mapping[str, str],
    after: int | None = None,
) -> str:
    context = {
        "conversation": conversation,
        "turns": shown,
        "dock": dock,
        "parts": [part for part in dock.parts.values() if has.get(part.id) != part.version],
        # Always: a page may have the current version of a block with an older output of its running command.
        "running": [one for turn in shown for one in turn.running],
        "has": has,
        "after": after,
        "oob": True,
    }
    return render_to_string("conversations/live.html", context)
