"""Blocks: the pieces a turn is displayed as. The last one shows the status of the turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from agents.engine.outputs.kinds import Output as Entry
from agents.engine.outputs.registry import kind_of
from agents.plugins.blueprints.plugin import Named
from conversations.display.call import DisplayedCall
from conversations.display.failure import Failure, Remedy
from conversations.display.gate import Card
from conversations.models import File, State
from conversations.pages.timeline.activity import Activity
from conversations.pages.timeline.drafts import Prose, RunningCommand
from conversations.usage.totals import Spent

OTHER = "conversations/timeline/other.html"
"""The template of an output whose kind has no template, or is no longer installed."""
_LASTING = ("text", "activity", "file", "widget")
"""Kinds whose templates show nothing but the block, a widget its data. Those of installed apps may show anything."""


@dataclass(frozen=True)
class Status:
    """The status of a turn. `kind` is queued, working, speaking, continuing, waiting, sleeping, or how it ended.

    `activity`: the number of the activity block that already says that the turn is working. `because` is why the turn
    failed, `failure` more of it if its model failed, `advice` what to do about it, `kept` how many calls succeeded,
    which a failure does not undo. `may`: the reader may decide. For the last turn, `on`: it can be continued; `again`:
    its message can be repeated. `first` is the better of these two. `spent`, and the blueprints that `stood` in its
    rounds, are known once the turn has ended. `until`: when it will wake.
    """

    kind: str
    since: datetime
    activity: int | None = None
    because: str = ""
    advice: str = ""
    failure: Failure | None = None
    kept: int = 0
    rounds: int = 0
    tokens: int = 0
    spent: Spent | None = None
    stood: tuple[Named, ...] = ()
    answered: bool = False
    may: bool = False
    on: bool = False
    again: bool = False
    first: str = ""
    until: datetime | None = None

    @property
    def look(self) -> str:
        """How the first button looks: it is the obvious thing to do, unless something has to be repaired first."""
        return "" if self.failure and self.failure.remedy is not Remedy.TIME else "primary"

    @property
    def shown(self) -> bool:
        """Whether there is anything to show."""
        quiet = self.kind == State.COMPLETED and not (self.rounds or self.again)
        return self.activity is None and self.kind != "speaking" and not quiet


@dataclass(frozen=True)
class Block:
    """One block of a turn. `kind` names the template, unless the block is an output: its own kind has the template.

    `redacted`: the content of a widget was redacted. `number` and `of`: the gate is number 2 of 3 in its batch.
    `running` is the output of its command so far, `words` a text that is shown as it is, and `call` the call that it is
    the result of.
    """

    kind: str
    id: str
    version: str
    entry: Entry | None = None
    card: Card | None = None
    file: File | None = None
    redacted: bool = False
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
        """The template, and its fallback. An output's kind names the template, unless the output has a card."""
        if self.entry is None or self.card:
            return [f"conversations/timeline/{self.kind}.html"]
        kind = kind_of(self.entry)
        return [*([kind.template] if kind and kind.template else []), OTHER]

    @property
    def lasts(self) -> bool:
        """Whether it looks the same as long as it has this version, once its turn has ended: it shows no time ago."""
        return self.status.kind == State.COMPLETED if self.status else not self.card and self.kind in _LASTING

    @property
    def parts(self) -> Iterator[tuple[str, str]]:
        """The ids and versions of the block, and of its parts that can be sent on their own."""
        yield self.id, self.version
        if self.activity:
            yield from self.activity.parts
        if self.prose:
            yield from self.prose.parts
