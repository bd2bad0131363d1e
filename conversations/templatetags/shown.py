"""Filters and tags of the templates."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django import template
from django.template.defaultfilters import stringfilter
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from conversations.pages.markdown import render
from conversations.shown import faithful, people, when

if TYPE_CHECKING:
    from django.contrib.auth.models import User

register = template.Library()


@register.filter
@stringfilter
def visible(text: str) -> SafeString:
    """See conversations.shown.faithful.visible()."""
    return faithful.visible(text)


@register.filter
@stringfilter
def inert(text: str) -> str:
    """See conversations.shown.faithful.inert()."""
    return faithful.inert(text)


@register.filter
def command_lines(command: str) -> list[SafeString]:
    """See conversations.shown.faithful.command_lines()."""
    return faithful.command_lines(command)


@register.filter
def markdown(text: str) -> SafeString:
    """See conversations.pages.markdown.render()."""
    return render(text)


@register.filter
def called(user: User) -> str:
    """See conversations.shown.people.called()."""
    return people.called(user)


@register.filter
def ago(time: datetime) -> SafeString:
    """How long ago, with the exact time beside it."""
    return _time(time, when.ago(time))


@register.filter
def ahead(time: datetime) -> SafeString:
    """How far off, with the exact time beside it."""
    return _time(time, when.ahead(time))


def _time(time: datetime, words: str) -> SafeString:
    exact = time.isoformat(timespec="seconds")
    return format_html('<time datetime="{}" title="{}">{}</time>', exact, exact.replace("T", " "), words)


@register.simple_tag
def icon(name: str) -> SafeString:
    """An icon of icons.svg; decoration, so nothing is said of it."""
    file = static("conversations/icons.svg")
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#i-{}"/></svg>', file, name)
