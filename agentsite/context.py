"""What every page knows of the site."""

from django.conf import settings
from django.http import HttpRequest

from conversations.database.disk import is_short
from conversations.pages.theme import chosen


def site(request: HttpRequest) -> dict[str, object]:
    """What a page has to say of the site: `demo` that the demo model answers, `disk_full` that nothing can be stored.

    `theme`: what was chosen in this browser.
    """
    return {"demo": settings.DEMO, "disk_full": is_short(), "theme": chosen(request)}
