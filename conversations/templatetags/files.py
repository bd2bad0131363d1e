"""Filters of the templates that show files."""

from __future__ import annotations

from django import template
from django.utils.safestring import SafeString

from conversations.display.faithful import inert
from conversations.display.rendering.code import highlight
from conversations.display.rendering.markdown import render
from conversations.display.rendering.place import Place
from conversations.models import File
from conversations.pages.files import previews
from conversations.pages.files.images import Image

register = template.Library()


@register.filter
def shown_image(file: File | None) -> Image | None:
    """Return which image a file is, to be shown at once; None if it is none, or there is no file any more."""
    return previews.shown_image(file) if file else None


@register.filter
def markdown_of(text: str, file: File) -> SafeString:
    """Render the Markdown of a file as safe HTML, with its diagrams and the images of its conversation."""
    return render(text, Place.of_file(file.pk, file.conversation_id))


@register.filter
def code_of(text: str, file: File) -> SafeString:
    """Show the text of a file in the colours of its language, which its name says."""
    return highlight(inert(text), file.name)
