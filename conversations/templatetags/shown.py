"""Filters and tags of the templates."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from django import template
from django.template.defaultfilters import stringfilter
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from conversations.accounts import names
from conversations.display import faithful, long, when
from conversations.pages.timeline.markdown import render
from conversations.prompts.killswitch import active_switch, actor_name

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from conversations.pages.timeline.activity import ActivityRow
    from conversations.pages.timeline.blocks import Block
    from conversations.pages.timeline.drafts import Prose
    from conversations.pages.timeline.growing import Piece

register = template.Library()


@register.filter
@stringfilter
def visible(text: str) -> SafeString:
    """See conversations.display.faithful.visible()."""
    return faithful.visible(text)


@register.filter
@stringfilter
def inert(text: str) -> str:
    """See conversations.display.faithful.inert()."""
    return faithful.inert(text)


@register.filter
def command_lines(command: str) -> list[SafeString]:
    """See conversations.display.faithful.command_lines()."""
    return faithful.command_lines(command)


@register.filter
def markdown(text: str) -> SafeString:
    """See conversations.pages.timeline.markdown.render()."""
    return render(text)


@register.filter
def grouped(number: int) -> str:
    """A whole number with its thousands set apart."""
    return f"{number:,}"


@register.filter
def collapsed(text: str) -> long.Long | None:
    """See conversations.display.long.collapsed()."""
    return long.collapsed(text)


@register.filter
def called(user: User) -> str:
    """See conversations.accounts.names.called()."""
    return names.called(user)


@register.filter
def ago(time: datetime) -> SafeString:
    """How long ago, with the exact time beside it."""
    return _time(time, when.ago(time))


@register.filter
def ahead(time: datetime) -> SafeString:
    """How far off, with the exact time beside it."""
    return _time(time, when.ahead(time))


@register.filter
def span(seconds: float) -> str:
    """See conversations.display.when.span()."""
    return when.span(seconds)


def _time(time: datetime, words: str) -> SafeString:
    exact = time.isoformat(timespec="seconds")
    return format_html('<time datetime="{}" title="{}">{}</time>', exact, exact.replace("T", " "), words)


@register.simple_tag
def icon(name: str, more: str = "") -> SafeString:
    """An icon of icons.svg; decoration, so nothing is said of it. `more`: further classes."""
    file, classes = static("conversations/icons.svg"), f"icon {more}".rstrip()
    return format_html('<svg class="{}" aria-hidden="true"><use href="{}#i-{}"/></svg>', classes, file, name)


@register.simple_tag
def kill_switch() -> dict[str, object] | None:
    """The kill switch while it is on: the row, and by whom, in words; None while turns run."""
    now = active_switch()
    return {"row": now, "by": actor_name(now.on_by)} if now else None


@register.filter
def holds(has: Mapping[str, str] | str, part: Block | ActivityRow) -> bool:
    """Whether a page has this part in its version. `has` holds ids and versions; blank for a page that has nothing."""
    return isinstance(has, Mapping) and has.get(part.id) == part.version


@register.filter
def since(prose: Prose, has: Mapping[str, str] | str) -> tuple[int, list[tuple[str, Piece]]]:
    """See conversations.pages.timeline.drafts.Prose.since()."""
    return prose.since(has if isinstance(has, Mapping) else {})
