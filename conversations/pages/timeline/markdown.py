"""Markdown of a model as safe HTML: whatever a model writes is treated as hostile."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version
from itertools import takewhile
from typing import Any

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from conversations.display.cells import cell_class
from conversations.display.faithful import first_line, inert

TAGS = {
    "a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
    "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
BLOCKS = {"blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "ul"}
"""The blocks of text, each of which reads in the direction of its own script."""
ATTRIBUTES = {
    "a": {"href", "title"},
    "div": {"aria-label", "dir", "role", "tabindex"},
    **{tag: {"dir"} for tag in BLOCKS},
    "ol": {"dir", "start"},
}
ALIGNED = {"right", "center"}
CELL = {*ALIGNED, "whole", "long"}
CLASSES = {
    "div": {"code", "code-head", "table-wrap"}, "span": {"grow", "not-shown", "w"}, "table": {"grid"}, "td": CELL,
    "th": CELL,
}  # fmt: skip
SCHEMES = {"http", "https", "mailto"}
_CODE_WORD = re.compile(r"\S+")


def _in_one_piece(word: re.Match[str]) -> str:
    return f'<span class="w">{word[0]}</span>' if "-" in word[0] else word[0]


class Renderer(RendererHTML):
    """Renders images as their text: loading one from another server would tell it what was written."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Return the image's text, marked as not shown."""
        words = self.renderInlineAsText(tokens[idx].children or [], options, env)
        said = f"Image not shown: {words}" if words else "Image not shown"
        return f'<span class="not-shown">[{escapeHtml(said)}]</span>'

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Return code in a line. A word with hyphens stays in one piece: `--out` is not broken into `--` and `out`."""
        return f"<code>{_CODE_WORD.sub(_in_one_piece, escapeHtml(tokens[idx].content))}</code>"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Open a table, in a box of its own in which a wide one scrolls. Its headings name the box."""
        head = takewhile(lambda token: token.type != "thead_close", tokens[idx:])
        names = ", ".join(filter(None, (self._text(token, options, env) for token in head if token.type == "inline")))
        name = escapeHtml(first_line(f"Table: {names}" if names else "Table"))
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
        """Render a fenced code block."""
        return _code(tokens[idx].content, tokens[idx].info)

    code_block = fence  # an indented one has no name of a language


CELLS_MOST = 4_000
"""The maximum number of table cells in one text. Short rows are padded, so 1.5 kB could become 60,000 of them."""

BRACKETS_MOST = 10_000
"""The maximum number of opening brackets in one text. Each may start a link, and checking costs fifty letters' time."""

RENDERER = tuple(f"{name} {version(name)}" for name in ("markdown-it-py", "nh3"))
"""What renders, besides this module: HTML of other versions may differ."""


def _directed(state: StateCore) -> None:
    """Let each block read in the direction of its own script, and what is inside it in the same."""
    for token in state.tokens:
        if token.level == 0 and token.nesting == 1 and token.tag in BLOCKS:
            token.attrSet("dir", "auto")


_plain = MarkdownIt("commonmark", {"html": False}, renderer_cls=Renderer).enable("strikethrough")
_plain.disable(["link", "image"])
_parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=Renderer).enable(["table", "strikethrough"])
for _each in (_plain, _parser):
    _each.core.ruler.push("directed", _directed)


def render(text: str) -> SafeString:
    """Return Markdown as HTML: no scripts, styles or images, and links to the web and e-mail only."""
    plain = inert(text)
    return _sanitised(_parser_of(plain).render(plain))


def parse(text: str, known: dict[str, Any]) -> list[Token]:
    """Return Markdown as tokens. `known` holds link definitions; those in the text are added to it."""
    plain = inert(text)
    return _parser_of(plain).parse(plain, known)


def _parser_of(text: str) -> MarkdownIt:
    """Return the full parser, or for more tables or links than anybody reads the one that leaves rows as lines."""
    if text.count("[") > BRACKETS_MOST:
        return _plain
    cells = 0
    for paragraph in re.split(r"\n[ \t]*\n", text):
        lines = paragraph.split("\n")
        cells += len(lines) * max(line.count("|") for line in lines)
    return _parser if cells <= CELLS_MOST else _plain


def inline(text: str) -> list[Token]:
    """Return the tokens of text inside one block."""
    return _parser_of(text).parseInline(text)[0].children or []


def rendered(tokens: Sequence[Token], known: dict[str, Any]) -> SafeString:
    """Return tokens as HTML, as safe as that of `render`."""
    return _sanitised(_parser.renderer.render(tokens, _parser.options, known))


def code(text: str, info: str, *, headed: bool) -> SafeString:
    """Return a code block, or a part of one, as HTML. Only the first part is `headed`."""
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
    """Return code in its box, under the name of its language."""
    language = info.split(maxsplit=1)[0] if info.strip() else "Code"
    head = f'<div class="code-head"><span class="grow">{escapeHtml(language)}</span></div>' if headed else ""
    return f'<div class="code">{head}<pre><code>{escapeHtml(text)}</code></pre></div>'
