"""The script that is used when there is no other: enough to try a site with. No language model, and it says so."""

from __future__ import annotations

import re

from agents.engine.ledger import JSON
from agents.providers.demo.script import Call, Reply, items, last_user_text

INTRODUCTION = "I am a scripted stand-in, not a language model: I only know a few phrases."
PHRASES = "Say “list files”, “read NAME” or “run COMMAND”."


def answer(body: dict[str, JSON]) -> Reply:
    """Do what the user's phrase asks for, if its tool is offered; then tell the first line of what came of it."""
    last = items(body)[-1]
    if last.get("type") == "function_call_output":
        return Reply(_summary(body))
    call = _call(last_user_text(body).strip())
    offered = {tool["name"] for tool in body.get("tools") or ()}
    if call and call.name in offered:
        return Reply(f"{INTRODUCTION} I will do that.", (call,))
    if "shell_run" in offered and _is_first(body):
        return Reply(f"{INTRODUCTION} To show how a step is approved, I ask to list the files.", (LIST,))
    return Reply(f"{INTRODUCTION} {PHRASES}")


LIST = Call("shell_run", {"command": "ls -la"})


def _call(said: str) -> Call | None:
    if match := re.fullmatch(r"run\s+`?(.+?)`?", said, re.IGNORECASE | re.DOTALL):
        return Call("shell_run", {"command": match[1]})
    if match := re.fullmatch(r"read\s+`?(.+?)`?", said, re.IGNORECASE):
        return Call("files_read", {"path": match[1]})
    if re.search(r"\b(list|show)\b.*\bfiles\b", said, re.IGNORECASE):
        return Call("files_list", {"path": "."})
    return None


def _summary(body: dict[str, JSON]) -> str:
    """The first line of each result of the last batch."""
    lines: list[str] = []
    for item in reversed(items(body)):
        if item.get("type") != "function_call_output":
            break
        lines.append((item["output"].strip().splitlines() or ["nothing"])[0])
    told = "\n".join(f"> {line}" for line in reversed(lines))
    return f"The result begins with:\n\n{told}\n\nA language model would go on from here; I only follow a script."


def _is_first(body: dict[str, JSON]) -> bool:
    return [item.get("role") for item in items(body)].count("user") <= 1
