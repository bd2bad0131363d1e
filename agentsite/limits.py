"""The limits of request bodies by address, and who sends a request. `agentsite.bodies` enforces them."""

from __future__ import annotations

from urllib.parse import unquote

from django.conf import settings
from django.http import parse_cookie
from django.urls import Resolver404, resolve

from agents.passthrough.routes import POSTED, ROOT
from agentsite.refusals import ORDINARY_MOST
from conversations.accounts.keys import allows, key_from_header
from conversations.database.threads import DatabaseThread
from conversations.files.uploads import FILES_MOST
from conversations.models import Scope
from conversations.push.access import ListeningRefused, carries_key, pass_by_session
from conversations.triggers.hooks.receiving import BODY_MOST
from conversations.usage.storage import MB


def table() -> dict[str, int]:
    """Return the bytes that a body may have, where that is not ORDINARY_MOST: more or less.

    By the name of the URL or, of what is passed on to the model server and is no URL of Django's, by the path.

    More is only for POST, and for people who are known.
    """
    upload = (FILES_MOST * settings.AGENTSITE_UPLOAD_MB + 2) * MB  # plus two for the text and the form around it
    one = (settings.AGENTSITE_UPLOAD_MB + 2) * MB
    passed_on = settings.AGENTSITE_PASSTHROUGH_BODY_MB * MB
    return (
        dict.fromkeys(UPLOADS, upload)
        | dict.fromkeys(UPLOADS_OF_ONE, one)
        | dict.fromkeys(PASSED_ON, passed_on)
        | {"hook": BODY_MOST}
    )


UPLOADS = ("start", "say", "stop", "api-prompts", "workflow", "workflow-fill")
"""The addresses to which files are sent. Without JavaScript, the button that stops a turn sends its form's files."""
UPLOADS_OF_ONE = ("workflow-upload", "api-uploads")
"""The addresses to which one file is sent."""
PASSED_ON = frozenset(ROOT + path for path in POSTED)
"""The paths of what is passed on to the model server."""


class SiteLimits:
    """The limits of the site's own addresses."""

    def __init__(self) -> None:
        self._table = table()
        self._thread = DatabaseThread("entry")  # apart from those of sockets: no upload waits for them

    def most(self, method: bytes, target: bytes) -> int:
        """Return how many bytes a body may have that is sent with this method to this request target."""
        path = _path(target)
        try:
            most = self._table.get(path if path in PASSED_ON else resolve(path).view_name, ORDINARY_MOST)
        except Resolver404:
            most = ORDINARY_MOST
        return most if method == b"POST" else min(most, ORDINARY_MOST)

    def waits(self, target: bytes) -> bool:
        """Whether the model server has to answer."""
        return _path(target) in PASSED_ON

    async def person(self, target: bytes, authorization: str, cookies: str) -> int | None:
        """Return the id of the user with this API key or session; None for a stranger. Raises django.db.Error.

        What is passed on to the model server is only for keys that may have it passed on.
        """
        return await self._thread(_key_for_models if self.waits(target) else _person, authorization, cookies)


def _path(target: bytes) -> str:
    return unquote(target.partition(b"?")[0].decode("latin-1"))


def _key_for_models(authorization: str, _cookies: str) -> int | None:
    key = key_from_header(authorization)
    return key.user_id if key and allows(key, Scope.PASSTHROUGH) else None


def _person(authorization: str, cookies: str) -> int | None:
    if carries_key(authorization):
        key = key_from_header(authorization)  # whatever it may do: not all that send large bodies may read
        return key.user_id if key else None
    try:
        return pass_by_session(parse_cookie(cookies).get(settings.SESSION_COOKIE_NAME, "")).user
    except ListeningRefused:
        return None
