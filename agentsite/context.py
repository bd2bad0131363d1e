"""What every page knows of the site."""

from django.conf import settings
from django.http import HttpRequest

from conversations.pages.theme import chosen


def site(request: HttpRequest) -> dict[str, object]:
    """`demo`: the demo model answers, and the page has to say so. `theme`: what was chosen in this browser."""
    return {"demo": settings.DEMO, "theme": chosen(request)}
