"""What the scripted model does, by what the person says."""

from __future__ import annotations

from typing import Any


def says(text: str, command: str = "") -> dict[str, Any]:
    """One answer: a text, and perhaps a command that must be approved."""
    calls = [{"name": "shell_run", "arguments": {"command": command}}] if command else []
    return {"text": text, "calls": calls}


TURNS: dict[str, list[dict[str, Any]]] = {
    "Look around, then say the day.": [
        says("I will look.", "echo two files"),
        says("Now the day.", "echo it is Friday"),
        says("Two files, Friday."),
    ],
    "Tidy up.": [says("I will tidy.", "rm -rf notes"), says("I left the notes where they are.")],
    "*": [says("Hello.")],
}
