"""A model's Markdown as HTML that can do nothing: what a model writes is hostile until shown otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from conversations.shown.faithful import inert

TAGS = {
    "a", "blockquote", "br", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p",
    "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
CLASSES = {"div": {"code", "table-wrap"}, "span": {"not-shown"}, "table": {"grid"}}
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

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A block of code in its box."""
        return f'<div class="code"><pre><code>{_escaped(tokens[idx].content)}</code></pre></div>'

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """The same for an indented one."""
        return self.fence(tokens, idx, options, env)


_parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=Renderer).enable(["table", "strikethrough"])


def render(text: str) -> SafeString:
    """The Markdown as HTML: no scripts, no styles, no pictures, links to the web and to mail only."""
    html = nh3.clean(
        _parser.render(inert(text)),
        tags=TAGS,
        attributes=ATTRIBUTES,
        allowed_classes=CLASSES,
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )
    return mark_safe(html)  # noqa: S308 - sanitised above, and only here


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
