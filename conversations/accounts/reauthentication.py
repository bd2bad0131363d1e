"""Reauthentication: whoever approves a call of a risk that the site names has entered their password lately.

When a person entered it is kept in their session: of another session of theirs, nobody knows who sits there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from conversations.accounts import throttle
from conversations.accounts.http import PersonRequest

LASTS_MINUTES = 10
"""For how long nobody is asked again."""
ASK = "Nothing was decided: enter your password."
HAS_NONE = "Approving this needs a password, and you have none: ask an administrator to set one for you."
_ENTERED = "password_entered"


@dataclass(frozen=True)
class Entered:
    """Whether a person has entered their password lately; if not, `problem` says what is missing or wrong."""

    verified: bool = False
    problem: str = ""


def remember_sign_in(sender: object, request: HttpRequest, user: object, **more: Any) -> None:
    """Note that whoever has just signed in has entered their password."""
    request.session[_ENTERED] = timezone.now().timestamp()


def seconds_left(request: HttpRequest) -> int:
    """Return for how many seconds this session's person is not asked; 0 if they are, or if the site asks nobody."""
    if not settings.AGENTSITE_REAUTHENTICATE or not hasattr(request, "session"):
        return 0
    since = timezone.now().timestamp() - request.session.get(_ENTERED, 0)
    return max(0, int(LASTS_MINUTES * 60 - since))


def enter(request: PersonRequest, password: str) -> Entered:
    """Check the password that came with a form, or else when it was last entered. A wrong one is a failed sign-in."""
    if not password:
        missing = ASK if request.user.has_usable_password() else HAS_NONE
        return Entered(True) if seconds_left(request) else Entered(problem=missing)
    if wrong := throttle.password_problem(request, password):
        return Entered(problem=f"Nothing was decided: {wrong}")
    request.session[_ENTERED] = timezone.now().timestamp()
    return Entered(True)
