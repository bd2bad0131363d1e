"""The site as an ASGI application: Django with its static files, and the WebSockets.

Static files are served by the same process so that one command is enough; Daphne does not serve them by itself. They
are served from the apps' own folders, without `collectstatic`, whether DEBUG is on or off.
"""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")

from channels.routing import ProtocolTypeRouter
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.asgi import get_asgi_application
from django.core.exceptions import SuspiciousFileOperation
from django.http import FileResponse, Http404, HttpRequest, HttpResponse


class StaticFiles(ASGIStaticFilesHandler):
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


pages = StaticFiles(get_asgi_application())

from conversations.push.routing import sockets  # noqa: E402 - Django's apps are ready only now

application = ProtocolTypeRouter({"http": pages, "websocket": sockets})
