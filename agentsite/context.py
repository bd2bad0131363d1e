"""What every page knows of the site."""

from django.conf import settings
from django.http import HttpRequest


def site(_request: HttpRequest) -> dict[str, bool]:
    """`demo`: the demo model answers, and the page has to say so."""
    return {"demo": settings.DEMO}
