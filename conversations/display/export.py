"""Exporting a conversation as Markdown.

Text from people, models and tools is contained, so that it cannot look like a decision or a heading of the export:
prose is quoted, which also ends any markup it opens; input and results are fenced, with fences longer than any inside;
names are escaped. The same record gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from django.contrib.auth.models import AnonymousUser
from django.db.models import Prefetch
from django.template.defaultfilters import filesizeformat

from agents.engine.agent.projection import render, shorten
from agents.engine.ledger import JSON
from agents.engine.outputs.kinds import FileOutput, ResultOutput, TextOutput, ToolOutput, WidgetOutput
from agents.engine.outputs.kinds import Output as Entry
from agents.engine.outputs.timeline import reading_order
from conversations.accounts.names import display_name
from conversations.display.call import call_of, display_call, result_text
from conversations.display.cards import cards
from conversations.display.failure import Failure, failures_of, site_notice
from conversations.display.faithful import inert, spelled_out
from conversations.display.gate import Card
from conversations.display.value import without_references
from conversations.files.uploads import clean_file_name
from conversations.models import Conversation, File, GateState, Output, Prompt, State

RESULT_MOST = 2_000
"""Characters of a result; a longer one shows its head and tail."""
NAME_MOST = 80
"""Characters of the file's name, without its extension."""
ENDS = {
    State.FAILED: "This turn failed.",
    State.CANCELLED: "This turn was stopped.",
    State.WAITING: "This turn is waiting for a decision.",
    State.SLEEPING: "This turn is sleeping until a time that it has set.",
    State.RUNNING: "This turn is still running.",
    State.QUEUED: "This turn has not started yet.",
}

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+.!|<>&~$-])")


def file_name(conversation: Conversation) -> str:
    """Return the file name of the export."""
    return clean_file_name(f"{str(conversation)[:NAME_MOST].strip()}.md")


def export_markdown(conversation: Conversation) -> str:
    """Return the conversation's visible turns as Markdown, in order."""
    given = Prefetch("files", File.objects.order_by("pk"))
    shown = conversation.prompts.filter(visible=True).select_related("asked_by").prefetch_related(given)
    prompts = list(shown.order_by("number"))
    rows: dict[int, list[Output]] = {}
    for row in Output.objects.of(*prompts).select_related("conversation__owner"):
        rows.setdefault(row.prompt_id, []).append(row)
    # For an anonymous reader: people who decided are named even if they read it themselves, not called "you".
    asked = cards([row for of_turn in rows.values() for row in of_turn if row.gate], AnonymousUser())
    gates = {card.row.pk: card for card in asked}
    blocks = [f"# {_inline(str(conversation))}", _about(conversation)]
    failures = failures_of(prompts, AnonymousUser())
    for prompt in prompts:
        blocks += _turn(prompt, rows.get(prompt.pk, []), gates, failures.get(prompt.pk))
    return "\n\n".join(blocks) + "\n"


def _about(conversation: Conversation) -> str:
    owner = conversation.owner
    name = owner.get_full_name() or owner.get_username()
    began, last = _time(conversation.created_at), _time(conversation.last_step_at)
    return f"Owner: {_inline(name)}. Started {began}, last changed {last}."


def _turn(prompt: Prompt, rows: Iterable[Output], gates: Mapping[int, Card], failure: Failure | None) -> Iterator[str]:
    """Yield a turn's message, its outputs, and its state unless it is complete."""
    who = display_name(prompt.starter) if prompt.starter else prompt.get_origin_display()
    yield f"## {prompt.number}. {_inline(who)}, {_time(prompt.created_at)}"
    if prompt.repeats_id:
        yield "Repeats the turn above, which has the earlier answer."
    if prompt.input:
        yield _quote(prompt.input)
    elif prompt.reminder is not None:
        yield f"{'Webhook' if prompt.files.all() else 'Reminder'}: {_inline(prompt.reminder)}"
    elif prompt.input is None:
        yield "Continue from where it stopped." if prompt.continues_id else "Started without a message."
    if given := prompt.files.all():
        yield "\n".join(f"- Attached file: {_inline(file.name)}, {_size(file.size)}" for file in given)
    by_position = {row.position: gates.get(row.pk) for row in rows}
    entries = reading_order(gates[row.pk].entry if row.pk in gates else row.entry() for row in rows)
    notice = site_notice(entries) if failure else None
    for entry in entries:
        if entry is not notice:
            yield from _entry(entry, by_position[entry.position])
    if failure:
        yield "**The site**:"
        yield _quote(failure.in_one_line)
        if failure.said:
            yield "The model server said:"
            yield _quote(failure.said)
    if said := ENDS.get(State(prompt.state)):
        yield said


def _entry(entry: Entry, gate: Card | None) -> Iterator[str]:
    if isinstance(entry, ToolOutput):
        yield from _asked(gate) if gate and gate.own else _call(entry, gate)
    elif isinstance(entry, TextOutput):
        stopped = " (stopped here)" if entry.partial else ""
        yield f"**{'The site' if entry.role_hint == 'system' else 'Agent'}**{stopped}:"
        yield _quote(entry.text)
    elif isinstance(entry, FileOutput):
        yield f"File created: {_inline(entry.name)}"
        yield from _quoted(entry.summary)
    elif isinstance(entry, WidgetOutput):
        yield f"Shown: {_inline(entry.widget)}"
        yield from _quoted(entry.fallback)
    elif isinstance(entry, ResultOutput):
        yield "The result:"
        yield fenced(shorten(render(entry.output), RESULT_MOST))


def _call(entry: ToolOutput, gate: Card | None) -> Iterator[str]:
    """Yield a call's input, its decision, and the head and tail of its result."""
    call = gate.call if gate else call_of(entry)
    yield f"**{_inline(call.title)}** (tool {_inline(entry.tool)}):"
    yield fenced(_input(entry, entry.input))
    if entry.proposed is not None:
        yield "The original input:"
        yield fenced(_input(entry, entry.proposed))
    if gate:
        yield from _decision(gate)
    result = "" if gate and gate.refused else result_text(entry)
    if result:
        yield "It failed:" if entry.result.type == "error" else "Result:"
        yield fenced(shorten(result, RESULT_MOST))
    elif not entry.settled and not (gate and gate.pending):
        yield "It has no result yet."


def _asked(gate: Card) -> Iterator[str]:
    """Yield what a policy asked a person itself, and the answer."""
    yield "**A question**:" if gate.question else "**Something to approve**:"
    yield _quote(gate.row.reason)
    yield from _quoted(gate.details)
    if gate.question and gate.question.choices:
        yield "\n".join(f"- {_inline(each)}" for each in gate.question.choices)
    if gate.pending:
        yield "Waiting for a decision."
        return
    yield from _verdict(gate)
    if gate.answer:
        yield fenced("\n".join(f"{each.name}: {each.text}" if each.name else each.text for each in gate.answer))


def _decision(gate: Card) -> Iterator[str]:
    row = gate.row
    if row.gate == GateState.PENDING:
        yield "Waiting for a decision. Reason:"
        yield _quote(row.reason)
        return
    yield from _verdict(gate)


def _verdict(gate: Card) -> Iterator[str]:
    row = gate.row
    place, when = f" {gate.where}" if gate.where else "", f", {_time(row.decided_at)}" if row.decided_at else ""
    yield f"{_inline(gate.verdict)}{place}{when}."
    yield from _quoted(row.note)


def _input(entry: ToolOutput, payload: dict[str, JSON]) -> str:
    """Return a command as it is if it is the whole input; anything else as JSON."""
    call = display_call(entry.tool, payload, gate=entry.approval)
    return call.command if call.command is not None and not call.fields else spelled_out(without_references(payload))


def fenced(text: str) -> str:
    """Return the text as a block of code that nothing in the text can end."""
    safe = _safe(text)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", safe)), default=0))
    return f"{fence}text\n{safe}\n{fence}"


def _quoted(text: str) -> Iterator[str]:
    if text.strip():
        yield _quote(text)


def _quote(text: str) -> str:
    """Return the text as a quote, so that markup it opens ends with it."""
    return "\n".join(f"> {line}".rstrip() for line in _safe(text).strip("\n").split("\n"))


def _safe(text: str) -> str:
    """Return the text with "\\n" as line ends, and bidirectional and control characters as their numbers."""
    ended = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub(lambda found: f"[U+{ord(found[0]):04X}]", inert(ended))


def _inline(text: str) -> str:
    """Return the text on one line, with all special characters of Markdown and HTML escaped."""
    return _MARKDOWN.sub(r"\\\1", " ".join(_safe(text).split()))


def _time(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _size(size: int) -> str:
    return filesizeformat(size).replace("\xa0", " ")
