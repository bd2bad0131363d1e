"""What the scripted model does, by what the person says."""

from __future__ import annotations

from typing import Any

from tests.crash.scenarios import S99, says

LONG_COMMAND = "sleep 86017"
"""A command that is found among all processes by its argument."""

TURNS: dict[str, list[dict[str, Any]]] = {
    "*": [says("Hello.")],
    "ask": S99.rounds,
    "count": [says("I count.", ("fx_count", {"name": "a"})), says("Done.")],
    "take long": [says("It takes long.", ("fx_slow", {"seconds": 4})), says("Done.")],
    "take longer than three leases": [says("It takes longer.", ("fx_slow", {"seconds": 13})), says("Done.")],
    "take for ever": [says("It takes for ever.", ("fx_slow", {"seconds": 600})), says("Done.")],
    "wait": [says("I wait.", ("shell_run", {"command": LONG_COMMAND})), says("Done.")],
    "die": [says("I die.", ("fx_crash", {"name": "a"})), says("Done.")],
    "talk": [says("word " * 40, ("fx_once", {"name": "a"}), pause_seconds=0.1), says("Done.")],
}
