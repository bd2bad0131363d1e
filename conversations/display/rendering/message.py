"""A person's message: as it was typed, with its fences as code."""

from __future__ import annotations

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

from conversations.display.faithful import inert
from conversations.display.rendering.markdown import code

FENCES_MOST = 200
"""Fences of one message that are shown as code; more than anybody writes."""

_fences = MarkdownIt("zero").enable("fence")


def message_html(message: str) -> SafeString:
    """Return a message as HTML. Only fences are Markdown in it, and only those that are closed."""
    plain = inert(message).replace("\r\n", "\n").replace("\r", "\n")
    lines, parts, end = plain.split("\n"), [], 0
    fences = [token for token in _fences.parse(plain) if token.type == "fence"]
    for token in fences[:FENCES_MOST]:
        if token.map and lines[token.map[1] - 1].strip() == token.markup:
            parts += [_typed(lines[end : token.map[0]]), code(token.content, token.info, headed=True, coloured=True)]
            end = token.map[1]
    parts.append(_typed(lines[end:]))
    return format_html_join("", "{}", ((part,) for part in parts))


def _typed(lines: list[str]) -> SafeString:
    text = "\n".join(lines)
    return format_html('<p class="typed" dir="auto">{}</p>', text) if text.strip() else SafeString()
