"""Starting children: waiting until each is ready to do its work."""

import time
from collections.abc import Callable

from agentsite.errors import CannotStart
from conversations.worker.children import Child, Family

START_SECONDS = 60.0  # for a child to be ready; a cold start takes 4 to 5 s (measured on two cores)


class TooSlow(CannotStart):
    """A child that was not ready in time, but may still come."""


def await_child(
    family: Family,
    child: Child,
    ready: Callable[[], bool],
    patience_seconds: float = START_SECONDS,
    starts: int = 1,
) -> None:
    """Wait until a child is ready, or the site is told to stop. Meanwhile, keep the others running.

    Raises CannotStart if the child dies in each of so many `starts`, and TooSlow if it is not ready in time.
    """
    deadline = time.monotonic() + patience_seconds
    while not family.stopping and not ready():
        if not child.running and child.starts >= starts:
            raise CannotStart(f"The {child.name} stopped while it was starting: see its output above.")
        if time.monotonic() > deadline:
            raise TooSlow(f"The {child.name} was not ready within {patience_seconds:g} s: see its output above.")
        family.restart_dead()
        family.wait(0.05)
