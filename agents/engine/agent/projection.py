"""What the model sees: a lossy projection of the outputs. Widgets are dropped, files summarised, calls paired."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from dataclasses import replace

from agents.engine.interfaces.attached import input_messages
from agents.engine.interfaces.messages import AssistantMessage, CallRequest, Message, ResultMessage, UserMessage
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import JSON, Step, valid_text
from agents.engine.limits import Limits
from agents.engine.outputs.kinds import Failure, Output, RetryOutput, Success, TextOutput, ToolOutput
from agents.engine.outputs.registry import kind_of
from agents.engine.outputs.timeline import Outputs
from agents.engine.paths import parent
from agents.engine.tools.tool import wire_name
from agents.engine.view import asked_for

logger = logging.getLogger(__name__)

NOBODY_SPOKE = "(Nobody said anything: this turn began without a message.)"
"""Stands where a person's words would: many model servers insist that the two take turns."""
GO_ON = "(Your last turn ended before its work was done. The person asks you to go on: take it up where it stopped.)"
"""Stands where the person's words would in a turn that continues another: nobody said anything new in it."""
NEXT = "(Go on.)"
"""Stands after the model's own words where it is asked again and nobody said anything since."""
TURN_ENDED = "[The turn ended here.]"
"""Stands where the model's last words would, in a turn that has none."""


class CallIds:
    """Ids on the wire: the provider's own where it is new in the conversation, else one made of the call's path."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, prompt: int, entry: ToolOutput) -> str:
        """The id of this call, to be asked for once per call."""
        own = entry.call_id
        made = f"c{prompt}_{entry.path.replace('/', '_')}"
        while made in self._used:  # a model may have chosen the very same
            made += "_"
        chosen = own if own and own not in self._used else made
        self._used.add(chosen)
        return chosen


def round_messages(
    outputs: Outputs, path: str, ids: CallIds, *, prompt: int, limits: Limits, items: tuple[JSON, ...] = ()
) -> list[Message]:
    """What one finished round said and did: the answer, its calls' results in call order, then what else they made.

    A call that never got a result gets one here that says so (R23). What is told of files, and of outputs of kinds from
    outside, stands at the end of the last result: nothing may stand between calls and results (R21), and a message of
    the model after them would be taken for the beginning of its next answer.
    """
    said = [o for o in outputs.at(path) if isinstance(o, TextOutput)]
    requests: list[CallRequest] = []
    results: list[ResultMessage] = []
    made: list[str] = []
    for entry in outputs.entries_of(path):
        call_id, name = ids.of(prompt, entry), wire_name(entry.tool)
        requests.append(CallRequest(call_id, name, entry.input))
        results.append(
            ResultMessage(call_id, name, result_text(entry, limits.result_characters, f"{prompt}:{entry.path}"))
        )
        made += [words for o in outputs.at(entry.path) if (words := model_text(o))]
    messages: list[Message] = []
    text = "\n\n".join(answer_text(o.text, o.partial) for o in said if o.text)
    if text or requests:
        messages.append(AssistantMessage(text, tuple(requests), items))
    if made:
        results[-1] = replace(results[-1], content="\n\n".join([results[-1].content, *made]))
    messages += results
    for output in outputs.at(path):
        if isinstance(output, RetryOutput):
            messages += [
                AssistantMessage(output.raw or "(nothing)"),
                UserMessage(f"[error] {output.message} Try again."),
            ]
    return messages


def model_text(output: Output) -> str:
    """What the model is told of an output, in the words of its kind; "" where it is told nothing."""
    kind = kind_of(output)
    if kind is None or kind.told is None:
        return ""
    try:
        return valid_text(kind.told(output) or "")
    except Exception:
        logger.warning("the model is told nothing of the output %r at %s", output.type, output.path, exc_info=True)
        return ""


def answer_text(text: str, partial: bool) -> str:
    """What the model reads of its own words; where it was stopped, by a person or by the time, that it was."""
    return f"{text}\n[This answer was stopped here.]" if partial else text


def turn_messages(past: PastTurn, ids: CallIds, limits: Limits) -> list[Message]:
    """An earlier prompt, whole: what the person said and gave, then round by round what came of it (S13).

    It begins with the person's words and ends with the model's, or with what stands for them: so whatever is said next
    is in turn. Nothing, of one in which nothing was said at all.
    """
    outputs = Outputs()
    rounds: dict[str, None] = {}
    for output in sorted(past.outputs, key=lambda o: o.position):
        outputs.put(output)
        if not output.parent and output.type in ("text", "tool", "retry"):
            rounds[_round_of(output)] = None
    messages: list[Message] = [*input_messages(past.input, past.files)]
    for path in rounds:
        messages += round_messages(outputs, path, ids, prompt=past.prompt, limits=limits)
    if messages and not isinstance(messages[0], UserMessage):
        messages.insert(0, UserMessage(NOBODY_SPOKE))
    if messages and not isinstance(messages[-1], AssistantMessage):
        messages.append(AssistantMessage(TURN_ENDED))
    return messages


def _round_of(output: Output) -> str:
    return parent(output.path) if isinstance(output, ToolOutput) else output.path


READ_ON = "results.read"
"""The tool that reads on in a long result. What it returns is a page of one: of a long one its beginning is shown."""
_PAGE = re.compile(r"\[Characters (\d+) to \d+ of (\d+); .+\.\]\n")


def page(content: str, start: int, total: int) -> str:
    """Part of a result from `start` on, below a line that says which it is of how much, and where to go on."""
    end = start + len(content)
    rest = f"the next offset is {end}" if end < total else "that is its end"
    return f"[Characters {start} to {end} of {total}; {rest}.]\n{content}"


def result_text(entry: ToolOutput, most: int, result: str = "") -> str:
    """The result of a call as the model reads it; of a long one head, tail and how to read on (S77).

    Of a page it is a shorter page. `result` is the name under which `READ_ON` finds it, "" where it does not.
    """
    text = whole_text(entry)
    if text is None:
        text = "Error (not_executed): The turn ended before this was done."
    elif entry.tool == READ_ON and (line := _PAGE.match(text)):
        if len(text) - line.end() > most:
            text = page(text[line.end() :][:most], int(line[1]), int(line[2]))
    else:
        text = shorten(text, most, result)
    if isinstance(entry.result, Failure):
        text = f"Error ({entry.result.error['code']}): {text}"
    if entry.proposed is not None:
        text = f"[A person changed the input of this call before it ran.]\n{text}"
    return text


def whole_text(entry: ToolOutput) -> str | None:
    """All that a call came to, as text: its output, or why it failed. None where it has no result."""
    if isinstance(entry.result, Success):
        return render(entry.result.output)
    return entry.result.error["message"] if isinstance(entry.result, Failure) else None


def render(output: JSON) -> str:
    """A tool's output as text: a command's as stdout, stderr and `exit: 0 (1.2s)` (S91), other data as JSON."""
    if isinstance(output, str):
        return output
    match output:
        case {"stdout": str(stdout), "stderr": str(stderr), "exit": exit_code, "seconds": int() | float() as seconds}:
            parts = [stdout.rstrip("\n"), stderr.rstrip("\n"), str(output.get("note", ""))]
            return "\n".join([*filter(None, parts), f"exit: {exit_code} ({seconds:.1f}s)"])
    # Sorted, so that it is the same text before and after it was stored: offsets into it stay true.
    return json.dumps(output, ensure_ascii=False, sort_keys=True)


def shorten(text: str, most: int, result: str = "") -> str:
    """Head and tail of a text of more than `most` characters, with what is left out between them.

    `result`: the name under which it can be read on; the offsets are those that `READ_ON` takes.
    """
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, len(text) - most // 3
    gap = f"truncated: {tail - head} of {len(text)} characters left out, from {head} to {tail}"
    if result:
        gap += f"; {wire_name(READ_ON)} with {json.dumps({'result': result, 'offset': head})} reads on"
    return f"{text[:head]}\n[... {gap} ...]\n{text[tail:]}"


def ledger_messages(steps: Iterable[Step]) -> list[Message]:
    """A ledger given to the model as its history (S116): texts, and calls paired with their results.

    Calls without a result are left out: a model API refuses them. Where the model spoke first, or nobody did, that is
    said; where the model spoke last, it is asked to go on.
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
            words = answer_text(step.payload["text"], step.payload.get("partial", False))
            answers.setdefault(step.path, ([], []))[0].append(words)
        elif asked_for(step) and step.path in results:
            answers.setdefault(parent(step.path), ([], []))[1].append(step)
    close()
    if not (messages and isinstance(messages[0], UserMessage)):
        messages.insert(0, UserMessage(NOBODY_SPOKE))
    if isinstance(messages[-1], AssistantMessage):
        messages.append(UserMessage(NEXT))
    return messages


def _made_id(call: Step) -> str:
    return "c_" + call.path.replace("/", "_")


def _ledger_result(step: Step) -> str:
    if step.failed:
        return f"Error ({step.payload['code']}): {step.payload['message']}"
    return render(step.payload.get("output"))
