"""Markdown of a model as safe HTML: whatever a model writes is treated as hostile."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from django.utils.safestring import SafeString
from linkify_it import LinkifyIt
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.footnote.index import footnote_ref

from conversations.display.faithful import inert
from conversations.display.rendering.code import code_block
from conversations.display.rendering.formulas import formulas_plugin
from conversations.display.rendering.place import PLACE, Place
from conversations.display.rendering.renderer import Renderer
from conversations.display.rendering.sanitising import BLOCKS, sanitise
from conversations.display.rendering.tasks import tasks_plugin

CELLS_MOST = 4_000
"""The maximum number of table cells in one text. Short rows are padded, so 1.5 kB could become 60,000 of them."""

BRACKETS_MOST = 10_000
"""The maximum number of opening brackets in one text. Each may start a link, and checking costs fifty letters' time."""

ADDRESSES_MOST = 1_000
"""The maximum number of addresses in one text: the time to find them grows with the square of their number."""

RENDERER = tuple(
    f"{name} {version(name)}"
    for name in ("linkify-it-py", "markdown-it-py", "math-core", "mdit-py-plugins", "nh3", "pygments")
)
"""What renders, besides these modules: HTML of other versions may differ."""

_NUMBERED = re.compile(r"\[\^\d{1,3}\]")


def _directed(state: StateCore) -> None:
    """Let each block read in the direction of its own script, and what is inside it in the same."""
    for token in state.tokens:
        if token.level == 0 and token.nesting == 1 and token.tag in BLOCKS:
            token.attrSet("dir", "auto")


def _footnote_ref(state: StateInline, silent: bool) -> bool:
    """Read the mark of a footnote. One with a number is a mark before its footnote, which comes last, is there."""
    return footnote_ref(state, silent, always_match=bool(_NUMBERED.match(state.src, state.pos)))


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": True})
    parser.enable(["linkify", "strikethrough", "table"]).use(formulas_plugin).use(tasks_plugin).use(deflist_plugin)
    parser.use(footnote_plugin, inline=False, move_to_end=False)
    parser.inline.ruler.at("footnote_ref", _footnote_ref)
    # Only addresses that are written out: "example.com" is not always meant as one, and "main.rs" is no site in Serbia.
    parser.linkify = LinkifyIt(options={"fuzzy_link": False, "fuzzy_email": False})
    parser.core.ruler.push("directed", _directed)
    parser.renderer = Renderer(parser)  # in place of the rules that the plugins brought
    return parser


_full = _parser()
_plain = _parser().disable(["footnote_ref", "image", "link", "linkify", "table"])


def render(text: str, place: Place | None = None) -> SafeString:
    """Return Markdown as HTML: no scripts or styles, images of this site only, links to the web and e-mail.

    Without a `place`, images are not shown, diagrams stay code, and footnotes are not linked.
    """
    plain = inert(text)
    return sanitise(_parser_of(plain).render(plain, {PLACE: place}))


def parse(text: str, known: dict[str, Any]) -> list[Token]:
    """Return Markdown as tokens. `known` holds link definitions and footnotes; those in the text are added to it."""
    plain = inert(text)
    return _parser_of(plain).parse(plain, known)


def _parser_of(text: str) -> MarkdownIt:
    """Return the full parser, or for more tables or links than anybody reads the one that leaves rows as lines."""
    if text.count("[") > BRACKETS_MOST or text.count("://") > ADDRESSES_MOST:
        return _plain
    cells = 0
    for paragraph in re.split(r"\n[ \t]*\n", text):
        lines = paragraph.split("\n")
        cells += len(lines) * max(line.count("|") for line in lines)
    return _full if cells <= CELLS_MOST else _plain


def inline(text: str) -> list[Token]:
    """Return the tokens of text inside one block."""
    return _parser_of(text).parseInline(text)[0].children or []


def rendered(tokens: Sequence[Token], known: dict[str, Any]) -> SafeString:
    """Return tokens as HTML, as safe as that of `render`. `known`: what `parse` was given, with its PLACE."""
    return sanitise(_full.renderer.render(tokens, _full.options, known))


def code(text: str, info: str, *, headed: bool, coloured: bool) -> SafeString:
    """Return a code block, or a part of one, as HTML. Only the first part is `headed`."""
    return sanitise(code_block(text, info, headed=headed, coloured=coloured))
