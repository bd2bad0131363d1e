"""What the model sees: a lossy projection of the outputs. Widgets are dropped, files summarised, calls paired."""

from __future__ import annotations

import json
from collections.abc import Iterable

from agents.engine.attached import said_messages
from agents.engine.ledger import JSON, Step
from agents.engine.limits import Limits
from agents.engine.messages import AssistantMessage, CallRequest, Message, ResultMessage, UserMessage
from agents.engine.outputs import Failure, FileOutput, Output, Outputs, RetryOutput, Success, TextOutput, ToolOutput
from agents.engine.services import PastTurn
from agents.engine.tools import wire_name
from agents.engine.view import asked_for, parent


class CallIds:
    """Ids on the wire: the provider's own where it is new in the conversation, else one made of the call's path."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, prompt: int, entry: ToolOutput) -> str:
        """The id of this call, to be asked for once per call."""
        own = entry.call_id
        made = f"c{prompt}_{entry.path.replace('/', '_')}"
        chosen = own if own and own not in self._used else made
        self._used.add(chosen)
        return chosen


def round_messages(
    outputs: Outputs, path: str, ids: CallIds, *, prompt: int, limits: Limits, items: tuple[JSON, ...] = ()
) -> list[Message]:
    """What one finished round said and did: the answer, its calls' results in call order, then the files they made.

    A call that never got a result gets one here that says so (R23). File summaries stand after the last result,
    because nothing may stand between calls and results (R21).
    """
    said = [o for o in outputs.at(path) if isinstance(o, TextOutput)]
    entries = outputs.entries_of(path)
    requests, results, files = [], [], []
    for entry in entries:
        call_id, name = ids.of(prompt, entry), wire_name(entry.tool)
        requests.append(CallRequest(call_id, name, entry.input))
        results.append(ResultMessage(call_id, name, result_text(entry, limits.result_characters)))
        files += [o for o in outputs.at(entry.path) if isinstance(o, FileOutput)]
    messages: list[Message] = []
    text = "\n\n".join(spoken(o.text, o.partial) for o in said if o.text)
    if text or requests:
        messages.append(AssistantMessage(text, tuple(requests), items))
    messages += results
    messages += [AssistantMessage(f"[file {o.name}] {o.summary}") for o in files]
    for output in outputs.at(path):
        if isinstance(output, RetryOutput):
            messages += [
                AssistantMessage(output.raw or "(nothing)"),
                UserMessage(f"[error] {output.message} Try again."),
            ]
    return messages


def spoken(text: str, partial: bool) -> str:
    """What the model reads of its own words; where a person stopped it, that it was stopped there."""
    return f"{text}\n[A person stopped this answer here.]" if partial else text


def turn_messages(past: PastTurn, ids: CallIds, limits: Limits) -> list[Message]:
    """An earlier prompt, whole: what the person said and gave, then round by round what came of it (S13)."""
    outputs = Outputs()
    rounds: dict[str, None] = {}
    for output in sorted(past.outputs, key=lambda o: o.position):
        outputs.put(output)
        if not output.parent and output.type in ("text", "tool", "retry"):
            rounds[_round_of(output)] = None
    messages: list[Message] = [*said_messages(past.input, past.files)]
    for path in rounds:
        messages += round_messages(outputs, path, ids, prompt=past.prompt, limits=limits)
    return messages


def _round_of(output: Output) -> str:
    return parent(output.path) if isinstance(output, ToolOutput) else output.path


def result_text(entry: ToolOutput, most: int) -> str:
    """The result of a call as the model reads it; of a long one head, tail and length (S77)."""
    if isinstance(entry.result, Success):
        text = shorten(render(entry.result.output), most)
    elif isinstance(entry.result, Failure):
        text = f"Error ({entry.result.error['code']}): {shorten(entry.result.error['message'], most)}"
    else:
        text = "Error (not_executed): The turn ended before this was done."
    if entry.proposed is not None:
        text = f"[A person changed the input of this call before it ran.]\n{text}"
    return text


def render(output: JSON) -> str:
    """A tool's output as text: a command's as stdout, stderr and `exit: 0 (1.2s)` (S91), other data as JSON."""
    if isinstance(output, str):
        return output
    match output:
        case {"stdout": str(stdout), "stderr": str(stderr), "exit": exit_code, "seconds": int() | float() as seconds}:
            parts = [stdout.rstrip("\n"), stderr.rstrip("\n"), str(output.get("note", ""))]
            return "\n".join([*filter(None, parts), f"exit: {exit_code} ({seconds:.1f}s)"])
    return json.dumps(output, ensure_ascii=False)


def shorten(text: str, most: int) -> str:
    """Head and tail of a text of more than `most` characters, with how much is left out between them."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    gap = f"[... truncated: {len(text) - head - tail} of {len(text)} characters left out ...]"
    return f"{text[:head]}\n{gap}\n{text[len(text) - tail :]}"


def ledger_messages(steps: Iterable[Step]) -> list[Message]:
    """A ledger given to the model as its history (S116): texts, and calls paired with their results.

    Calls without a result are left out: a model API refuses them.
    """
    steps = list(steps)
    results = {s.path: s for s in steps if s.type == "action_result"}
    messages: list[Message] = []
    answers: dict[str, tuple[list[str], list[Step]]] = {}

    def close() -> None:
        for texts, asked in answers.values():
            requests = [CallRequest(_made_id(c), wire_name(c.payload["policy"]), c.payload["payload"]) for c in asked]
            messages.append(AssistantMessage("\n\n".join(texts), tuple(requests)))
            messages.extend(
                ResultMessage(r.call_id, r.name, _ledger_result(results[c.path]))
                for r, c in zip(requests, asked, strict=True)
            )
        answers.clear()

    for step in steps:
        if step.type == "text" and step.actor != "model":
            close()
            messages.append(UserMessage(step.payload["text"]))
        elif step.type == "text":
            words = spoken(step.payload["text"], step.payload.get("partial", False))
            answers.setdefault(step.path, ([], []))[0].append(words)
        elif asked_for(step) and step.path in results:
            answers.setdefault(parent(step.path), ([], []))[1].append(step)
    close()
    return messages


def _made_id(call: Step) -> str:
    return "c_" + call.path.replace("/", "_")


def _ledger_result(step: Step) -> str:
    if step.failed:
        return f"Error ({step.payload['code']}): {step.payload['message']}"
    return render(step.payload.get("output"))
