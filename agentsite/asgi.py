"""The site as an ASGI application: Django, with its static files in front, and beside it the sockets.

The files are served by the same process so that one command is enough; Daphne alone knows none. They are found where
the apps keep them, with no collecting step, and DEBUG off as well as on.
"""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")

from channels.routing import ProtocolTypeRouter
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.asgi import get_asgi_application
from django.http import FileResponse, HttpRequest, HttpResponse


class StaticFiles(ASGIStaticFilesHandler):
    """Static files that a browser asks for again each time and gets only where they changed."""

    def serve(self, request: HttpRequest) -> HttpResponse | FileResponse:
        """The file, with the headers that Django's middleware would have set."""
        response = super().serve(request)
        response.headers["Cache-Control"] = "no-cache"  # their names carry no version
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


pages = StaticFiles(get_asgi_application())

from conversations.push.routing import sockets  # noqa: E402 - only now are Django's apps ready

application = ProtocolTypeRouter({"http": pages, "websocket": sockets})
