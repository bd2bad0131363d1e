"""The renderer of Markdown: what each token looks like. Its HTML is sanitised afterwards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from urllib.parse import quote, unquote, urlsplit

from django.utils.html import escape
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from conversations.display.cells import cell_class
from conversations.display.faithful import first_line
from conversations.display.rendering.code import code_block
from conversations.display.rendering.diagrams import figure, is_diagram
from conversations.display.rendering.formulas import formula
from conversations.display.rendering.place import PLACE, Place
from conversations.display.rendering.sanitising import ALIGNED
from conversations.display.rendering.tasks import DONE

DRAWN = "drawn"
"""In the environment of a text: how many of its diagrams are pictures so far."""
DIAGRAMS_MOST = 100
"""Diagrams of one text that are pictures; the rest is code. Each is half a kilobyte of HTML, and is asked for twice."""
GROWING = "growing"
"""In the environment of a block whose end has not come yet: its code has no colours, and its diagrams are code."""

_CODE_WORD = re.compile(r"\S+")
_OUTSIDE = re.compile(r"(?:https?:/*|//+)", re.IGNORECASE)
"""What stands before the name of another site. Browsers take one slash, or three, for two."""


def _in_one_piece(word: re.Match[str]) -> str:
    return f'<span class="w">{word[0]}</span>' if "-" in word[0] else word[0]


class Renderer(RendererHTML):
    """Renders tokens for a Place, which stands in their environment as PLACE: None if a text has no pictures."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Return an image that is a file of the conversation, named as it is there.

        Any other is shown as its text: loading it from another server would tell it what was written.
        """
        words = self.renderInlineAsText(tokens[idx].children or [], options, env)
        address, place = urlsplit(str(tokens[idx].attrGet("src") or "")), _place(env)
        name = unquote(address.path).removeprefix("./")
        outside = address.scheme or address.netloc or name.startswith(("/", "\\")) or ".." in name.split("/")
        if place and name and not outside:
            source = escape(place.images + quote(name))
            return f'<img class="own" src="{source}" alt="{escape(words or name)}" loading="lazy">'
        said = f"Image not shown: {words}" if words else "Image not shown"
        return f'<span class="not-shown">[{escape(said)}]</span>'

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Open a link. One that leaves the site opens beside the conversation, and its title is where it goes."""
        href = str(tokens[idx].attrGet("href") or "")
        if not _host(href):
            return f'<a href="{escape(href)}">'
        leaving = 'target="_blank" rel="noopener noreferrer nofollow"'
        return f'<a href="{escape(href)}" title="{escape(href)}" {leaving}>'

    def link_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Close a link, and say which site it goes to, unless its text does."""
        opening = next(n for n in range(idx, -1, -1) if tokens[n].type == "link_open")
        host = _host(str(tokens[opening].attrGet("href") or ""))
        words = self.renderInlineAsText(tokens[opening + 1 : idx], options, env)
        return f'</a><span class="to"> ({escape(host)})</span>' if host and host not in words.lower() else "</a>"

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Return code in a line. A word with hyphens stays in one piece: `--out` is not broken into `--` and `out`."""
        return f"<code>{_CODE_WORD.sub(_in_one_piece, escape(tokens[idx].content))}</code>"

    def task(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Return the box of a task."""
        name, tick = ("Done", "\N{BALLOT BOX WITH CHECK}") if tokens[idx].meta[DONE] else ("To do", "\N{BALLOT BOX}")
        return f'<span class="tick" role="img" aria-label="{name}">{tick}</span> '

    def list_item_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Open an item of a list. The box of a task stands where the others have their mark."""
        return '<li class="task">' if tokens[idx].attrGet("class") else "<li>"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Open a table, in a box of its own in which a wide one scrolls. Its headings name the box."""
        head = takewhile(lambda token: token.type != "thead_close", tokens[idx:])
        names = ", ".join(filter(None, (self._text(token, options, env) for token in head if token.type == "inline")))
        name = escape(first_line(f"Table: {names}" if names else "Table"))
        return f'<div class="table-wrap" dir="auto" role="group" aria-label="{name}" tabindex="0"><table class="grid">'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Close the table and its box."""
        return "</table></div>"

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Open a cell. Classes set its alignment, because inline styles are not allowed, and where it breaks."""
        tag, aligned = tokens[idx].tag, str(tokens[idx].attrGet("style") or "").removeprefix("text-align:")
        shape = cell_class(self._text(tokens[idx + 1], options, env))
        classes = " ".join(filter(None, [aligned if aligned in ALIGNED else "", shape]))
        return f'<{tag} class="{classes}">' if classes else f"<{tag}>"

    th_open = td_open

    def _text(self, token: Token, options: OptionsDict, env: EnvType) -> str:
        """Return what a person reads of an inline token."""
        return self.renderInlineAsText(token.children or [], options, env).strip()

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Render a fenced code block, or the diagram that it is. In a block that still grows, both wait for its end."""
        token, place, growing = tokens[idx], _place(env), GROWING in env
        if place and is_diagram(token.info) and not growing and env.get(DRAWN, 0) < DIAGRAMS_MOST:
            env[DRAWN] = env.get(DRAWN, 0) + 1
            return figure(token.content, place)
        return code_block(token.content, token.info, coloured=not growing)

    code_block = fence  # an indented one has no name of a language

    def math_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Render a formula within a line."""
        return formula(tokens[idx].content.strip(), displayed=False)

    def math_inline_double(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Render a formula within a paragraph, on a line of its own."""
        return formula(tokens[idx].content.strip(), displayed=True)

    def math_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Render a formula on lines of its own, in a box in which a wide one scrolls."""
        return f'<div class="formula" tabindex="0">{formula(tokens[idx].content.strip(), displayed=True)}</div>\n'

    def footnote_ref(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Render the mark of a footnote: its label, so that it is the same before the footnote itself has arrived."""
        label, place = tokens[idx].meta["label"], _place(env)
        if place is None:
            return f"<sup>{escape(label)}</sup>"
        name = _note(label, place)
        own = f' id="fnref-{name}"' if tokens[idx].meta["subId"] == 0 else ""
        return f'<sup{own}><a href="#fn-{name}" aria-label="Footnote {escape(label)}">{escape(label)}</a></sup>'

    def footnote_reference_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Open a footnote, with its label, which leads back to where it was mentioned."""
        label, place = tokens[idx].meta["label"], _place(env)
        if place is None:
            return f'<div class="footnote"><sup>{escape(label)}</sup><div>'
        name = _note(label, place)
        back = f'<a class="back" href="#fnref-{name}" aria-label="Back to footnote {escape(label)}">{escape(label)}</a>'
        return f'<div class="footnote" id="fn-{name}"><sup>{back}</sup><div>'

    def footnote_reference_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Close a footnote."""
        return "</div></div>\n"


def _place(env: EnvType) -> Place | None:
    place = env.get(PLACE)
    return place if isinstance(place, Place) else None


def _note(label: str, place: Place) -> str:
    """Return what names a footnote on the page: those of other texts have the same labels."""
    return f"{place.name}-{quote(label, safe='')}"


def _host(href: str) -> str:
    """Return the site that a link goes to, or whom it writes to; "" for one that stays on this site."""
    outside = _OUTSIDE.match(href)
    try:
        address = urlsplit(f"//{href[outside.end() :]}" if outside else href)
    except ValueError:
        return ""
    return address.path if address.scheme == "mailto" else (address.hostname or "")
