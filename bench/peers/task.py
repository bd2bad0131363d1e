"""What the contenders are to do, in words that the scripted model understands, and the echo tool of those with none."""

from __future__ import annotations

from typing import Any

ECHO, ASK = "bench_echo", "bench_ask"
"""The tools that are called: one that runs at once, and one that somebody has to approve."""
SAID_BYTES = 200
"""What is said again."""
SYSTEM = {"role": "system", "content": "You are a helpful assistant."}
ECHO_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": ECHO,
        "description": "Say it again.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
}


def task(rounds: int, tool: str = ECHO, delay_ms: int = 0) -> str:
    """Return the message that makes the model call this tool so often, and answer each request so much later."""
    return f"bench: {rounds} rounds of {tool} after {delay_ms} ms"
