"""The script of the model, by the person's message."""

from __future__ import annotations

import os
from typing import Any

from tests.crash.scenarios import S99, says

LONG_COMMAND = f"sleep {10**7 + os.getpid()}"
"""A command that only these tests run, so that its argument identifies it among all processes."""

WRITTEN = f"{'Another line than before. ' * 40}\n" * 3_000
"""Three megabytes."""

TURNS: dict[str, list[Any]] = {
    "*": [says("Hello.")],
    "ask": S99.rounds,
    "count": [says("I count.", ("fx_count", {"name": "a"})), says("Done.")],
    "take long": [says("It takes long.", ("fx_slow", {"seconds": 4})), says("Done.")],
    "take longer than three leases": [says("It takes longer.", ("fx_slow", {"seconds": 13})), says("Done.")],
    "take for ever": [says("It takes for ever.", ("fx_slow", {"seconds": 600})), says("Done.")],
    "wait": [says("I wait.", ("shell_run", {"command": LONG_COMMAND})), says("Done.")],
    "die": [says("I die.", ("fx_crash", {"name": "a"})), says("Done.")],
    "take your time": [says("I look.", ("fx_look", {"seconds": 3})), says("Done.")],
    "take it again": [says("I do.", ("fx_again", {"seconds": 3})), says("Done.")],
    "three": [
        says("Three.", ("fx_read", {"a": 1}), ("fx_read", {"a": 2}), ("fx_look", {"seconds": 3})),
        says("Done."),
    ],
    "think": [says("Hm.", delay_seconds=4)],
    "stutter": [
        [
            says("I do.", ("fx_once", {"name": "a"}), break_after="response.function_call_arguments.delta"),
            says("I do.", ("fx_once", {"name": "a"})),
        ],
        says("Done."),
    ],
    "do": [says("I do.", ("fx_once", {"name": "a"})), says("Done.")],
    "write": [says("I write.", ("files_write", {"path": "notes.txt", "content": WRITTEN})), says("Done.")],
    "hang": [says("I hang.", ("fx_hang", {"seconds": 30})), says("Done.")],
    "tell much": [says("much " * 100_000, ("fx_once", {"name": "a"})), says("Done.")],
    "talk": [says("word " * 40, ("fx_once", {"name": "a"}), pause_seconds=0.1), says("Done.")],
}
