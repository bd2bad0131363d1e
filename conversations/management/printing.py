"""What a command prints: its errors, and its output, also to a full disk and to pipes that are closed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management.base import CommandError, OutputWrapper

from conversations.erasure.conversations import left_behind


@contextmanager
def reporting(*errors: type[Exception]) -> Iterator[None]:
    """Turn these errors into CommandError, which is printed without a traceback."""
    try:
        yield
    except errors as error:
        raise CommandError(str(error)) from None


def report_left_behind(erased: Iterable[int]) -> None:
    """Raise CommandError if the workspace of one of these conversations, which were erased, is still there."""
    if left := sorted(left_behind().intersection(erased)):
        raise CommandError(
            f"Not everything is gone: workspace {', '.join(map(str, left))} could not be removed completely, for the"
            " reasons above. It is tried again every night."
        )


@contextmanager
def flushed(out: OutputWrapper) -> Iterator[None]:
    """Flush what is printed in this block. Raises CommandError if it cannot be written, as on a full disk.

    If the reader of a pipe goes away, the command exits silently, as `cat` does.
    """
    try:
        try:
            yield
        finally:
            out.flush()
    except BrokenPipeError:
        _discard(out)
        raise SystemExit(128 + signal.SIGPIPE) from None
    except OSError as error:
        _discard(out)
        raise CommandError(str(error)) from None


def _discard(out: OutputWrapper) -> None:
    """Discard what is still in the buffer: the interpreter would try to flush it once more on exit, and complain."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), out.fileno())
