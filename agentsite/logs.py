"""Logging to stderr: one JSON object per line, or readable lines if stderr is a terminal.

Pass `extra={"conversation": ..., "prompt": ..., "path": ...}` to say what a line is about. Never log a payload, a
message or a header: they contain people's words and keys. Secrets are hidden in any case: the site's own everywhere,
those of a run in what is logged within it.
"""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

from agents.engine.secrets import HIDDEN, hide

_KEY = re.compile(r"\bagk_\w+")
# The attributes of a record that say what the line is about.
ABOUT = ("conversation", "prompt", "path")


class JsonFormatter(logging.Formatter):
    """`{"time", "level", "logger", "message", "conversation"?, "prompt"?, "path"?, "error"?}`; the time is UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_about(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        told = {name: hide(value) if isinstance(value, str) else value for name, value in line.items()}
        return _hidden(json.dumps(told, ensure_ascii=False, default=str))


class TerminalFormatter(logging.Formatter):
    """`12:34:56 warning agents.engine: message (prompt 7, path 3/1)`, in local time."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        """Return the readable line, with what it is about in brackets."""
        about = ", ".join(f"{name} {value}" for name, value in _about(record).items())
        return super().formatMessage(record) + (f" ({about})" if about else "")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with the error below it."""
        return _hidden(super().format(record))


def _hidden(line: str) -> str:
    """Return the line without secrets of the site or of the run, and without API keys."""
    return _KEY.sub(HIDDEN, hide(line))


def _about(record: logging.LogRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in ABOUT if hasattr(record, name)}


def configuration(level: str, *, terminal: bool | None = None) -> dict[str, Any]:
    """Return Django's LOGGING: everything from `level` on to stderr, chatty packages only from WARNING on.

    `terminal` chooses the readable format; None chooses it if stderr is a terminal.
    """
    readable = sys.stderr.isatty() if terminal is None else terminal
    formatter = TerminalFormatter if readable else JsonFormatter
    quiet = ("asyncio", "axes", "daphne", "django-q", "httpcore2", "httpx2", "openai", "uvicorn")
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": formatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            **{name: {"level": "WARNING"} for name in quiet},
            # Django's own handlers would print these lines a second time.
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": level, "propagate": True},
        },
    }
