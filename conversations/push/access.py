"""Access to sockets and streams: by a session from one of the site's own pages, or by an API key. Rechecked while open.

A request from another origin, or with a bad key, is refused before the socket is accepted (HTTP 403). A refused
request from one of the site's own pages is accepted and closed at once with a code, because browsers do not tell
pages why a socket was refused: 4401 sign in again, 4403 forbidden, 4404 no such conversation, or not theirs,
4409 the page is not that of whoever is signed in.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import reduce
from importlib import import_module
from operator import or_
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from conversations.accounts.keys import SCHEME, allows, key_from_header
from conversations.approvals.permissions import DECIDE_OTHERS, DECIDE_OWN
from conversations.models import ApiKey, Conversation, Scope

SIGN_IN, FORBIDDEN, NOT_FOUND, ANOTHER_PERSON = 4401, 4403, 4404, 4409


class ListeningRefused(Exception):
    """The client may not listen. `code` is a close code; 0 means that it is not told why."""

    def __init__(self, code: int = 0) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Pass:
    """What a client was admitted by, and what for: one conversation, or what only people who decide may see."""

    user: int
    session: str = ""
    session_hash: str = ""
    key: int | None = None
    conversation: int | None = None
    decides: bool = False


def admit(request: HttpRequest) -> Pass:
    """Return the pass of a client that opens a socket. Raises ListeningRefused.

    Pages give the id of their user as `person`: somebody else may have signed in since, in the same browser.
    """
    header = request.headers.get("Authorization", "")
    if carries_key(header):
        return pass_by_key(header)  # a page of another site cannot make a browser send it
    if not from_own_page(request):
        raise ListeningRefused
    entry = pass_by_session(request.COOKIES.get(settings.SESSION_COOKIE_NAME, ""))
    if request.GET.get("person", str(entry.user)) != str(entry.user):
        raise ListeningRefused(ANOTHER_PERSON)
    return entry


def from_own_page(request: HttpRequest) -> bool:
    """Whether the Origin header is the requested host or a trusted origin: the check that Django makes for forms."""
    check = CsrfViewMiddleware(lambda request: HttpResponse())
    return "Origin" in request.headers and bool(check._origin_verified(request))  # type: ignore[attr-defined]


def carries_key(header: str) -> bool:
    """Whether an `Authorization` header has an API key, good or not: if so, cookies are ignored."""
    return header.partition(" ")[0].lower() == SCHEME


def pass_by_key(header: str) -> Pass:
    """Return the pass of the API key in an `Authorization` header. Raises ListeningRefused, also if it may not read."""
    key = key_from_header(header)
    if key is None or not allows(key, Scope.READ):
        raise ListeningRefused
    return Pass(key.user_id, key=key.pk)


def pass_by_session(session_key: str) -> Pass:
    """Return the pass of the user with this session. Raises ListeningRefused if nobody is signed in."""
    store = import_module(settings.SESSION_ENGINE).SessionStore(session_key or None)
    data = store.load() if session_key else {}
    user = _user(data.get(SESSION_KEY))
    signed = data.get(HASH_SESSION_KEY, "")
    if user is None or data.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        raise ListeningRefused(SIGN_IN)
    if not _signed_for(user, signed):
        raise ListeningRefused(SIGN_IN)
    return Pass(user.pk, session=session_key, session_hash=signed)


def _user(pk: Any) -> User | None:
    try:
        return get_user_model().objects.filter(pk=pk, is_active=True).first() if pk else None
    except (ValueError, ValidationError):
        return None


def _signed_for(user: User, signed: str) -> bool:
    """Whether the session was opened under the user's current password."""
    hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(signed, known) for known in hashes)


def pass_to_conversation(entry: Pass, pk: int) -> Pass:
    """Return the pass for a conversation. Raises ListeningRefused if it does not exist or is not theirs."""
    person = get_user_model().objects.get(pk=entry.user)
    if not Conversation.objects.visible_to(person).filter(pk=pk).exists():
        raise ListeningRefused(NOT_FOUND)
    return replace(entry, conversation=pk)


def pass_to_approvals(entry: Pass) -> Pass:
    """Return the pass for the approvals that a person sees. Raises ListeningRefused if no page shows them any."""
    if not _following_approvals({entry.user}):
        raise ListeningRefused(FORBIDDEN)
    return replace(entry, decides=True)


def _following_approvals(users: Collection[int]) -> set[int]:
    """Return those to whom a page shows approvals: the inbox to people who decide, the admin to staff."""
    backend = "django.contrib.auth.backends.ModelBackend"
    found = (User.objects.with_perm(permission, backend=backend) for permission in (DECIDE_OWN, DECIDE_OTHERS))
    may = reduce(or_, (Q(pk__in=people.values("pk")) for people in found), Q(is_staff=True))
    return set(User.objects.filter(may, pk__in=users, is_active=True).values_list("pk", flat=True))


def expired_passes(passes: Collection[Pass]) -> dict[Pass, int]:
    """Return the passes that are no longer valid, with the code to close with. At most five queries for any number."""
    now = timezone.now()
    users = get_user_model().objects.filter(is_active=True).in_bulk({entry.user for entry in passes})
    sessions = Session.objects.filter(pk__in={entry.session for entry in passes if entry.session})
    open_sessions = set(sessions.filter(expire_date__gt=now).values_list("pk", flat=True))
    keys = ApiKey.objects.filter(pk__in={entry.key for entry in passes if entry.key})
    valid_keys = set(keys.filter(Q(expiry=None) | Q(expiry__gt=now)).values_list("pk", flat=True))
    conversations = Conversation.objects.filter(pk__in={entry.conversation for entry in passes})
    owned = set(conversations.values_list("pk", "owner"))
    decide = {entry.user for entry in passes if entry.decides}
    following = _following_approvals(decide) if decide else set()

    def refuses(entry: Pass) -> int:
        user = users.get(entry.user)
        signed_in = user is not None and entry.session in open_sessions and _signed_for(user, entry.session_hash)
        if user is None or not (signed_in or entry.key in valid_keys):
            return SIGN_IN
        if entry.decides and entry.user not in following:
            return FORBIDDEN
        if entry.conversation is not None and (entry.conversation, entry.user) not in owned:
            return NOT_FOUND
        return 0

    return {entry: code for entry in passes if (code := refuses(entry))}
