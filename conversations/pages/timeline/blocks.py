"""Blocks: the pieces that a turn is shown in, and how the turn stands, which the last of them says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from agents.engine.outputs.kinds import Output as Entry
from agents.engine.outputs.registry import kind_of
from conversations.display.call import DisplayedCall
from conversations.display.gate import Card
from conversations.models import File, State
from conversations.pages.timeline.activity import Activity
from conversations.pages.timeline.drafts import Prose, RunningCommand
from conversations.pages.timeline.widgets import Widget
from conversations.usage.totals import Spent

OTHER = "conversations/timeline/other.html"
"""Shows an output whose kind has no template, or is gone."""


@dataclass(frozen=True)
class Status:
    """`kind` is queued, working, speaking, continuing, waiting, failed, cancelled or completed.

    `activity`: the number of the block of activity that says that the turn works, so that its end need not. `because`
    says why it failed, `advice` what to do, `kept` how many calls came to a result, which a failure does not undo.
    `may`: the reader may decide. If it is the last, `on`: one can go on from where it ended; `again`: its message can
    be asked again. `first` is the one of these that is the better. `spent` is known once it has ended.
    """

    kind: str
    since: datetime
    activity: int | None = None
    because: str = ""
    advice: str = ""
    kept: int = 0
    rounds: int = 0
    tokens: int = 0
    spent: Spent | None = None
    answered: bool = False
    may: bool = False
    on: bool = False
    again: bool = False
    first: str = ""

    @property
    def words(self) -> str:
        """The number of tokens as people read it."""
        return f"{self.tokens:,}"

    @property
    def shown(self) -> bool:
        """Whether there is something to say."""
        quiet = self.kind == State.COMPLETED and not (self.rounds or self.again)
        return self.activity is None and self.kind != "speaking" and not quiet


@dataclass(frozen=True)
class Block:
    """One block of a turn. `kind` names the template of what is no output; an output's own kind has its template.

    `number` of `of`: where a gate stands among those of its batch. `running` is what its command has said so far,
    `words` what stands there as it is, of the `call` that it came of.
    """

    kind: str
    id: str
    version: str
    entry: Entry | None = None
    card: Card | None = None
    file: File | None = None
    widget: Widget | None = None
    running: RunningCommand | None = None
    number: int = 0
    of: int = 0
    activity: Activity | None = None
    prose: Prose | None = None
    status: Status | None = None
    words: str = ""
    call: DisplayedCall | None = None

    @property
    def templates(self) -> list[str]:
        """The template, and the one to take where there is none: an output names its own, unless somebody was asked."""
        if self.entry is None or self.card:
            return [f"conversations/timeline/{self.kind}.html"]
        kind = kind_of(self.entry)
        return [*([kind.template] if kind and kind.template else []), OTHER]

    @property
    def parts(self) -> Iterator[tuple[str, str]]:
        """The ids and versions of the block and of what can be sent of it by itself."""
        yield self.id, self.version
        if self.activity:
            yield from self.activity.parts
        if self.prose:
            yield from self.prose.parts
