"""A model's Markdown as HTML that can do nothing: what a model writes is hostile until shown otherwise."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from conversations.display.faithful import inert

TAGS = {
    "a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
    "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
ALIGNED = {"right", "center"}
CLASSES = {
    "div": {"code", "code-head", "table-wrap"}, "span": {"grow", "not-shown"}, "table": {"grid"}, "td": ALIGNED,
    "th": ALIGNED,
}  # fmt: skip
SCHEMES = {"http", "https", "mailto"}


class Renderer(RendererHTML):
    """Pictures become their words: to show one from elsewhere tells its server what was written."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """The picture's text, and that it is not shown."""
        words = self.renderInlineAsText(tokens[idx].children or [], options, env)
        said = f"Picture, not shown: {words}" if words else "Picture, not shown"
        return f'<span class="not-shown">[{_escaped(said)}]</span>'

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A wide table scrolls in its own box."""
        return '<div class="table-wrap"><table class="grid">'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """And the box ends."""
        return "</table></div>"

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A cell; where it is to stand at the right or in the middle a class says so, for nothing here has a style."""
        tag, aligned = tokens[idx].tag, str(tokens[idx].attrGet("style") or "").removeprefix("text-align:")
        return f'<{tag} class="{aligned}">' if aligned in ALIGNED else f"<{tag}>"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """The same for a heading."""
        return self.td_open(tokens, idx, options, env)

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A block of code in its box."""
        return _code(tokens[idx].content, tokens[idx].info)

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """The same for an indented one."""
        return self.fence(tokens, idx, options, env)


CELLS_MOST = 4_000
"""Cells that the tables of one text may have. Short rows are filled up, so that 1.5 kB could become 60,000 of them."""

BRACKETS_MOST = 10_000
"""Opening brackets of one text. Each may begin a link, and to find that out takes as long as fifty letters."""

_plain = MarkdownIt("commonmark", {"html": False}, renderer_cls=Renderer).enable("strikethrough")
_plain.disable(["link", "image"])
_parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=Renderer).enable(["table", "strikethrough"])


def render(text: str) -> SafeString:
    """The Markdown as HTML: no scripts, no styles, no pictures, links to the web and to mail only."""
    plain = inert(text)
    return _sanitised(_parser_of(plain).render(plain))


def parse(text: str, known: dict[str, Any]) -> list[Token]:
    """The Markdown as tokens. `known` holds the links that were defined, and takes in those that the text defines."""
    plain = inert(text)
    return _parser_of(plain).parse(plain, known)


def _parser_of(text: str) -> MarkdownIt:
    """The one with tables and links, unless there could be more than anybody reads: then rows stay lines."""
    if text.count("[") > BRACKETS_MOST:
        return _plain
    cells = 0
    for paragraph in re.split(r"\n[ \t]*\n", text):
        lines = paragraph.split("\n")
        cells += len(lines) * max(line.count("|") for line in lines)
    return _parser if cells <= CELLS_MOST else _plain


def inline(text: str) -> list[Token]:
    """The tokens of what stands within one block."""
    return _parser_of(text).parseInline(text)[0].children or []


def rendered(tokens: Sequence[Token], known: dict[str, Any]) -> SafeString:
    """Tokens as HTML, safe as that of `render`."""
    return _sanitised(_parser.renderer.render(tokens, _parser.options, known))


def code(text: str, info: str, *, headed: bool) -> SafeString:
    """A block of code as HTML, or one of its parts: only the first is headed."""
    return _sanitised(_code(text, info, headed=headed))


def _sanitised(html: str) -> SafeString:
    clean = nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        allowed_classes=CLASSES,
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(clean)  # noqa: S308 - sanitised above, and only here


def _code(text: str, info: str, *, headed: bool = True) -> str:
    """Code in its box, under the name of its language."""
    language = info.split(maxsplit=1)[0] if info.strip() else "Code"
    head = f'<div class="code-head"><span class="grow">{_escaped(language)}</span></div>' if headed else ""
    return f'<div class="code">{head}<pre><code>{_escaped(text)}</code></pre></div>'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
