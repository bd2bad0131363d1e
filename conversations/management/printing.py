"""Output that does not come to where it was to go."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management.base import CommandError, OutputWrapper


@contextmanager
def printed(out: OutputWrapper) -> Iterator[None]:
    """What is printed meanwhile, to its end. A full disk is said in a sentence; raises CommandError then.

    Where the reader of a pipe goes away, the command ends without a word, as `cat` does.
    """
    try:
        try:
            yield
        finally:
            out.flush()
    except BrokenPipeError:
        _give_up(out)
        raise SystemExit(128 + signal.SIGPIPE) from None
    except OSError as error:
        _give_up(out)
        raise CommandError(str(error)) from None


def _give_up(out: OutputWrapper) -> None:
    """Let what is still in the buffer go nowhere: the interpreter tries once more as it ends, and would complain."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), out.fileno())
