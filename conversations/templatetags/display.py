"""Filters and tags of the templates."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path

from django import template
from django.conf import settings
from django.contrib.staticfiles import finders
from django.template.base import FilterExpression, Parser, Token
from django.template.defaultfilters import stringfilter
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents.engine.ledger import JSON
from conversations.accounts import names
from conversations.accounts.reauthentication import LASTS_MINUTES
from conversations.display import faithful, gate, long, when
from conversations.display.call import displayed_result
from conversations.display.cells import cell_class
from conversations.display.html_cache import cached_html
from conversations.display.rendering import faithful_code
from conversations.display.rendering.markdown import RENDERER, render
from conversations.display.rendering.message import message_html
from conversations.display.rendering.place import Place
from conversations.models import Prompt
from conversations.pages.timeline.activity import ActivityRow
from conversations.pages.timeline.blocks import Block
from conversations.pages.timeline.drafts import Prose
from conversations.pages.timeline.growing import Piece
from conversations.pages.timeline.widgets import widget_html
from conversations.prompts.killswitch import active_switch, actor_name

register = template.Library()

_SYMBOL = re.compile(r'<symbol id="i-([\w-]+)" viewBox="([^"]*)">(.*)</symbol>')


register.filter("visible", stringfilter(faithful.visible))
register.filter("argument", faithful.argument)
register.filter("in_line", stringfilter(faithful.in_line))
register.filter("inert", stringfilter(faithful.inert))
register.filter("command_lines", faithful_code.command_lines)
register.filter("visible_code", stringfilter(faithful_code.visible_code))
register.filter("cell_class", stringfilter(cell_class))
register.filter("collapsed", long.collapsed)
register.filter("first_line", stringfilter(faithful.first_line))
register.filter("called", names.display_name)
register.filter("span", when.span)
register.filter("warnings_first", gate.warnings_first)
register.filter("widget_html", widget_html)


@register.filter
def markdown(text: str, prompt: Prompt | None = None) -> SafeString:
    """Render a model's Markdown as safe HTML. `prompt`: the turn it is of, which has its diagrams and images."""
    place = Place.of_prompt(prompt.pk, prompt.conversation_id) if prompt else None
    return cached_html(lambda: render(text, place), "markdown", RENDERER, place, text)


@register.filter
def typed(message: str) -> SafeString:
    """Show a person's message as it was typed, with its fences as code."""
    return cached_html(lambda: message_html(message), "typed", RENDERER, message)


@register.filter
def result(output: JSON) -> dict[str, object]:
    """Return what a policy returned as `text`, or as `fields`."""
    text, fields = displayed_result(output)
    return {"text": text, "fields": fields}


@register.filter
def grouped(number: int) -> str:
    """Format a whole number with thousands grouped."""
    return f"{number:,}"


@register.filter
def ago(time: datetime) -> SafeString:
    """Show how long ago a time was, with the exact time as its title."""
    return _time(time, when.ago(time))


@register.filter
def ahead(time: datetime) -> SafeString:
    """Show how far off a time is, with the exact time as its title."""
    return _time(time, when.ahead(time))


@register.filter
def at(time: datetime) -> SafeString:
    """Show a time to come by the clock, with the exact time as its title."""
    return _time(time, when.at(time), "data-exact")


def _time(time: datetime, words: str, more: str = "") -> SafeString:
    exact = time.isoformat(timespec="seconds")
    return format_html('<time datetime="{}" title="{}" {}>{}</time>', exact, exact.replace("T", " "), more, words)


class _Kept(template.Node):
    def __init__(self, turn: FilterExpression, has: FilterExpression, nodelist: template.NodeList) -> None:
        self._turn, self._has, self.nodelist = turn, has, nodelist

    def render(self, context: template.Context) -> SafeString:
        """Render what stands in the block, or take it from the cache; the reader's token takes the mark's place."""
        turn, has, token = self._turn.resolve(context), self._has.resolve(context), context.get("csrf_token")
        if has or not token or not turn.lasts:
            return self.nodelist.render(context)
        with context.push(csrf_token=_TOKEN_MARK):
            html = cached_html(lambda: self.nodelist.render(context), "turn", turn.prompt.trigger_id, turn.parts)
        return mark_safe(html.replace(_TOKEN_MARK, str(token)))  # noqa: S308 - Django's token


_TOKEN_MARK = secrets.token_urlsafe(24)
"""Stands for the token of forms in what is cached. It never reaches a page, so that no text can have it replaced."""


@register.tag
def kept(parser: Parser, token: Token) -> _Kept:
    """Take what stands until `endkept` from the HTML cache: `{% kept TURN HAS %}`, if it shows a turn that lasts.

    `HAS` is what the page has of it, if anything.
    """
    _, turn, has = token.split_contents()
    nodelist = parser.parse(["endkept"])
    parser.delete_first_token()
    return _Kept(parser.compile_filter(turn), parser.compile_filter(has), nodelist)


@register.simple_tag
def icon(name: str, more: str = "") -> SafeString:
    """Show an icon from icons.svg. It is decoration, hidden from screen readers. `more`: further CSS classes."""
    return _icon(settings.STATIC_URL, name, more)


@cache  # a long chat has hundreds
def _icon(_static_url: str, name: str, more: str) -> SafeString:
    file, classes = static("conversations/icons.svg"), f"icon {more}".rstrip()
    return format_html('<svg class="{}" aria-hidden="true"><use href="{}#i-{}"/></svg>', classes, file, name)


@register.simple_tag
def drawn_icon(name: str) -> SafeString:
    """Show an icon that is drawn in the page itself: a browser that cannot reach the site shows no other new one."""
    box, shape = _drawings()[name]
    return format_html('<svg class="icon" aria-hidden="true" viewBox="{}">{}</svg>', box, mark_safe(shape))  # noqa: S308 - our own file


@cache
def _drawings() -> dict[str, tuple[str, str]]:
    """Return the view box and the shapes of each icon, by name."""
    drawn = Path(str(finders.find("conversations/icons.svg"))).read_text(encoding="utf-8")
    return {name: (box, shape) for name, box, shape in _SYMBOL.findall(drawn)}


@register.simple_tag
def password_minutes() -> int:
    """Return for how many minutes nobody is asked for their password again."""
    return LASTS_MINUTES


@register.simple_tag
def kill_switch() -> dict[str, object] | None:
    """Return the kill switch while it is on: its row, and who turned it on, in words. None while turns may run."""
    now = active_switch()
    return {"row": now, "by": actor_name(now.on_by)} if now else None


@register.filter
def holds(has: Mapping[str, str] | str, part: Block | ActivityRow) -> bool:
    """Whether a page has this part in its version. `has` maps ids to versions; blank if the page has nothing."""
    return isinstance(has, Mapping) and has.get(part.id) == part.version


@register.filter
def since(prose: Prose, has: Mapping[str, str] | str) -> tuple[int, list[tuple[str, Piece]]]:
    """Return the pieces that a page lacks, and the number of the first."""
    return prose.since(has if isinstance(has, Mapping) else {})
