"""What a drain is to stop: itself, the prompts that were cancelled, and all of them while the kill switch is on.

Hand-written SQL, since this is read after every commit that a drain hears of: often, on a busy site.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from django.db.backends.utils import CursorWrapper

from conversations.database.changes import NUMBER
from conversations.database.plans import repeated_cursor
from conversations.ledger.claims import Claim
from conversations.models import KillSwitch, Step
from conversations.prompts.killswitch import active_switch
from conversations.worker.hosts import PARENT
from conversations.worker.processes import is_running

WHOLE_SECONDS = 1.0
"""Time between two looks whether the parent is there, and at all cancellations of the prompts that are held. Otherwise,
only new steps are looked at.
"""
OVERLAP = 100
"""Steps that are looked at twice: one that was written first may be committed after others."""
_STANDING = f"""
    SELECT EXISTS (SELECT 1 FROM conversations_worker w JOIN conversations_drain d ON d.host = w.host
                   WHERE w.host = %s AND d.token = %s AND NOT w.stopping AND w.pid = COALESCE(%s, w.pid)),
        EXISTS (SELECT 1 FROM conversations_killswitch WHERE off_at IS NULL),
        (SELECT COALESCE(max(id), 0) FROM conversations_step), {NUMBER}"""
"""Whether the host has no stop mark, the drain still its number, and no other parent a cluster that is running; whether
the kill switch is on; the last step of the site; and how often people have changed what turns rely on."""


@dataclass
class StopRequests:
    """What a drain is to stop: itself, the prompts that were cancelled, and all of them while the kill switch is on.

    `changes`: how often people have changed what turns rely on, see `conversations.database.changes`; None: not read.
    """

    stopping: bool = False
    changes: int | None = None
    cancelled: set[int] = field(default_factory=set)
    switch: KillSwitch | None = None


class StopReader:
    """Reads what the drain with this token is to stop. Used in one thread."""

    def __init__(self, host: str, token: str) -> None:
        self._parent = int(os.environ[PARENT]) if PARENT in os.environ else None
        self._drain = [host, token, self._parent]
        self._seen = 0  # the last step that was looked at
        self._whole_at = time.monotonic() - WHOLE_SECONDS

    def __call__(self, held: Collection[Claim]) -> StopRequests:
        """Return what is to stop. Of the prompts that are `held`, a cancellation may be told of repeatedly."""
        whole = time.monotonic() - self._whole_at >= WHOLE_SECONDS
        if whole and self._is_orphan():  # whatever has become of the database
            return StopRequests(stopping=True)
        with repeated_cursor() as cursor:
            cursor.execute(_STANDING, self._drain)
            may_go_on, switched_on, last, changes = cursor.fetchone()
            found = StopRequests(not may_go_on, changes)
            if held:
                found.switch = active_switch() if switched_on else None
                found.cancelled = _cancelled(held) if whole else self._newly_cancelled(cursor)
        if whole:
            self._whole_at = time.monotonic()
        self._seen = last
        return found

    def _is_orphan(self) -> bool:
        """Whether the parent was killed, and nobody would tell this drain to stop, or start it again."""
        return self._parent is not None and not is_running(self._parent)

    def _newly_cancelled(self, cursor: CursorWrapper) -> set[int]:
        cursor.execute(
            "SELECT prompt_id FROM conversations_step WHERE id > %s AND type = 'cancel'", [self._seen - OVERLAP]
        )
        return {prompt for (prompt,) in cursor.fetchall()}


def _cancelled(held: Collection[Claim]) -> set[int]:
    conversations, prompts = {claim.conversation for claim in held}, {claim.prompt for claim in held}
    cancels = Step.objects.filter(conversation__in=conversations, prompt__in=prompts, type="cancel").order_by()
    return set(cancels.values_list("prompt_id", flat=True))
