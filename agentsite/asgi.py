"""The site as an ASGI application: Django with its static files, `/v1` in front of it, and the WebSockets.

Static files are served by the same process so that one command is enough; Daphne does not serve them by itself. They
are served from the apps' own folders, without `collectstatic`, whether DEBUG is on or off.
"""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")

import django
from channels.routing import ProtocolTypeRouter
from django.conf import settings
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.exceptions import SuspiciousFileOperation
from django.core.handlers.asgi import ASGIHandler
from django.http import FileResponse, Http404, HttpRequest, HttpResponse

from agents.passthrough.app import Passthrough
from agentsite.bodies import Reader


class Site(ASGIHandler):
    """Django, which reads the server's own file of a body: by itself it would copy it into a second one."""

    async def read_body(self, receive: Any) -> Any:
        """Return the body."""
        return await (receive.whole() if isinstance(receive, Reader) else super().read_body(receive))


class StaticFiles(Site, ASGIStaticFilesHandler):  # type: ignore[misc]  # so does Django's own class to its mixin
    """Static files that a browser revalidates each time, and downloads only if they have changed."""

    def serve(self, request: HttpRequest) -> HttpResponse | FileResponse:
        """Return the file, with the headers that Django's middleware would have set. Raises Http404."""
        try:
            response = super().serve(request)
        except (SuspiciousFileOperation, ValueError, OSError) as error:  # a path out of the folders, with NUL, too long
            raise Http404 from error
        response.headers["Cache-Control"] = "no-cache"  # their names have no version
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


django.setup(set_prefix=False)
pages = StaticFiles(Site())

from conversations.accounts.passthrough import SiteCaller  # noqa: E402 - Django's apps are ready only now
from conversations.push.routing import sockets  # noqa: E402

passthrough = Passthrough(
    pages,
    SiteCaller(settings.AGENTSITE_PASSTHROUGH_ALIASES),
    base_url=settings.OPENAI_BASE_URL,
    api_key=settings.OPENAI_API_KEY,
    aliases=settings.AGENTSITE_PASSTHROUGH_ALIASES,
    https_only=settings.HTTPS,
)
application = ProtocolTypeRouter({"http": passthrough, "websocket": sockets})
