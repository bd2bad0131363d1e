"""Askers: who asks for a call, an agent or a program, and what the agent said in the answer that asks for it.

An agent's words are a claim. In the conversation they stand above the card; wherever the card stands alone, they go
with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from agents.engine.actors import Kind
from agents.engine.outputs.kinds import TextOutput
from agents.engine.paths import parent
from agents.engine.root import AGENT
from conversations.display.call import title_of
from conversations.models import Output, Step

WORDS_MOST = 600
"""Characters of an agent's words beside a card: more would push the call itself out of view."""
_MARKDOWN = MarkdownIt("commonmark")


@dataclass(frozen=True)
class Asker:
    """Who asks for a call. `program`: the title of the workflow or other policy; "" if an agent asks.

    `words`: what the agent wrote beside the call, or its beginning; "" if it wrote nothing.
    """

    program: str = ""
    words: str = ""


def askers_of(rows: Sequence[Output]) -> dict[int, Asker]:
    """Return who asks for the calls of these outputs, by output. All are looked up in two queries."""
    if not rows:
        return {}
    policies, words = _policies(rows), _words(rows)
    found = {}
    for row in rows:
        above = row.prompt_id, parent(row.path)
        if policies.get(above, AGENT) not in (AGENT, Kind.MODEL):
            found[row.pk] = Asker(program=title_of(policies[above]))
        else:
            said = without_marks("\n\n".join(words[above])[: 2 * WORDS_MOST])
            found[row.pk] = Asker(words=said if len(said) <= WORDS_MOST else f"{said[:WORDS_MOST]}…")
    return found


def without_marks(markdown: str) -> str:
    """Return Markdown as it is read, without the marks that make words bold, a list or code."""
    read = ""
    for token in _MARKDOWN.parse(markdown):
        if token.type in ("inline", "fence", "code_block"):
            between = "\n" if token.level > 1 else "\n\n"  # deeper: the items of a list
            read += f"{between if read else ''}{_words_of(token)}"
    return read.strip()


def _words_of(token: Token) -> str:
    if token.children is None:
        return token.content
    return "".join("\n" if each.type in ("softbreak", "hardbreak") else each.content for each in token.children)


def _policies(rows: Sequence[Output]) -> dict[tuple[int, str], str]:
    """Return the policies that made these calls, by prompt and path: of one in an answer, the model."""
    calls = Step.objects.filter(
        conversation__in={row.conversation_id for row in rows},
        prompt__in={row.prompt_id for row in rows},
        path__in={parent(row.path) for row in rows},
        type="action_call",
    )
    return {(call.prompt_id, call.path): call.content.get("policy", AGENT) for call in calls}


def _words(rows: Sequence[Output]) -> dict[tuple[int, str], list[str]]:
    """Return the texts of the answers that ask for these calls, by prompt and path of the round."""
    found = defaultdict[tuple[int, str], list[str]](list)
    rounds = {parent(row.path) for row in rows} - {""}  # texts of the turn itself are no answer
    texts = Output.objects.filter(prompt__in={row.prompt_id for row in rows}, path__in=rounds, type="text")
    for row in texts.order_by("position"):
        entry = row.entry()
        if isinstance(entry, TextOutput) and not entry.role_hint and entry.text.strip():
            found[row.prompt_id, row.path].append(entry.text.strip())
    return found
