"""The dock: the parts of the page around the timeline that change with it. Title, menu and state in the bar, what
is waiting, and the button to send or stop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agents.engine.decisions import Ask
from conversations.display.gate import Card
from conversations.models import Conversation, Prompt, State
from conversations.pages.chat.choosing import may_choose
from conversations.pages.timeline.turns import TimelineTurn
from conversations.pages.versions import version
from conversations.prompts import startable


class Part(NamedTuple):
    """An element that can be sent on its own."""

    id: str
    version: str

    @property
    def template(self) -> str:
        """The name of its template."""
        return f"conversations/dock/{self.id}.html"


@dataclass(frozen=True)
class Dock:
    """`active` is the turn that runs or waits, `last` the last turn, `ended` the one that ended last, shown or not.

    `cards` are the gates that wait together, and those of the same answer that are already decided.
    """

    conversation: Conversation
    active: Prompt | None
    last: Prompt | None
    ended: Prompt | None
    cards: Sequence[Card]

    @classmethod
    def of(cls, conversation: Conversation, turn: TimelineTurn | None, last: Prompt | None) -> Dock:
        """Return the dock of a conversation, given its active turn."""
        ended = conversation.prompts.ended().order_by("-ended_at").first()
        return cls(conversation, conversation.active_prompt, last, ended, turn.gates if turn else [])

    @property
    def page(self) -> str:
        """The address of the page of what the last turn ran; "" if it was the agent, or has none."""
        found = startable.found_or_none(self.last.policy) if self.last else None
        return found.page if found else ""

    @property
    def noun(self) -> str:
        """What its turn is called: a run, if something was started by name."""
        return "run" if self.page else "turn"

    @property
    def again(self) -> str:
        """The address of the form with which the last turn is started again; "" if there is none."""
        return startable.again_at(self.last.policy, self.last.pk) if self.last else ""

    @property
    def open(self) -> list[Card]:
        """The gates that still wait."""
        return [card for card in self.cards if card.pending]

    @property
    def yours(self) -> list[Card]:
        """The gates that wait for the reader; the rest wait for somebody else."""
        return [card for card in self.open if card.allow]

    @property
    def calls(self) -> list[Card]:
        """Those of the reader's gates that can be approved or rejected; the rest are questions."""
        return [card for card in self.yours if card.row.ask == Ask.APPROVE]

    @property
    def mixed(self) -> bool:
        """Whether the reader's gates carry different risks; these cannot be approved all at once."""
        return len({card.row.risk for card in self.calls}) > 1

    @property
    def state(self) -> str:
        """The state in the bar: waiting, sleeping, working, behind (a hidden turn is working), failed, or ""."""
        if self.open:
            return "waiting"
        if self.active and self.active.state == State.SLEEPING:
            return "sleeping"
        if self.active:
            return "working" if self.active.visible else "behind"
        return "failed" if self.last and self.last.state == State.FAILED else ""

    @property
    def may_choose(self) -> bool:
        """Whether its menu leads to the choice of a system prompt."""
        return may_choose(self.conversation)

    @property
    def parts(self) -> Mapping[str, Part]:
        """The elements, by id."""
        active, chat = self.active and self.active.pk, self.conversation
        shown = {
            "name": version(str(chat), self.page),
            "menu": version(str(chat), chat.archived_at is None, chat.system_prompt_id, self.may_choose),
            "state": version(self.state, len(self.yours)),
            "waits": version([(card.row.pk, card.row.gate) for card in self.cards], len(self.yours)),
            "act": version(active, self.state, len(self.yours), self.again, self.ended and self.ended.pk),
        }
        return {name: Part(name, value) for name, value in shown.items()}
