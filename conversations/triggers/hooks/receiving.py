"""Receiving: the address to which webhooks are sent. Nobody is signed in there, so no cookie counts.

Whoever does not prove who they are leaves no row in the database.
"""

from __future__ import annotations

from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.throttling import SimpleRateThrottle

from conversations.accounts.throttle import SHARED_LIMIT, client_address, may_be_shared
from conversations.models import Firing, Proof, Trigger
from conversations.triggers import slots
from conversations.triggers.hooks import secrets
from conversations.triggers.hooks.delivering import deliver
from conversations.triggers.hooks.proofs import BadProof, proven_id

BODY_MOST = 1024 * 1024
"""Bytes of a webhook. The web server refuses more before it is kept (agentsite.limits)."""
FAILURES_A_MINUTE = 60
"""Webhooks with a wrong proof from one address, for one trigger. Right ones from there are still taken."""
RETRY_SECONDS = 60
NO_HOOK = "No webhook is received at this address. Copy it from the page of the trigger."
CLOSED = "This trigger is paused or switched off. Its owner can resume it on its page."
WAIT = {
    "full": "As many webhooks wait for this trigger as may. Send this one again later.",
    "no_space": "This trigger has no space left for what it is sent. Send this one again later.",
}


class Refused(Exception):
    """A webhook that is not taken: the status, the code for programs, and the sentence for people."""

    def __init__(self, status: HTTPStatus, code: str, message: str, retry_after: int = 0) -> None:
        super().__init__(message)
        self.status, self.code, self.retry_after = status, code, retry_after

    def response(self) -> JsonResponse:
        """Return the answer to the sender."""
        error = {"code": self.code, "message": str(self)}
        later = {"retry_after": self.retry_after} if self.retry_after else {}
        headers = {"Retry-After": str(self.retry_after)} if self.retry_after else {}
        headers |= {"WWW-Authenticate": "Bearer"} if self.status == HTTPStatus.UNAUTHORIZED else {}
        headers |= {"Allow": "POST"} if self.status == HTTPStatus.METHOD_NOT_ALLOWED else {}
        return JsonResponse({"error": {**error, **later}}, status=self.status, headers=headers)


class _Rate(SimpleRateThrottle):  # type: ignore[misc]
    """So many times a minute under one key, as the API counts requests."""

    def __init__(self, key: str, most: int) -> None:
        self.rate = f"{most}/min"
        super().__init__()
        self._key = key

    def get_cache_key(self, request: object, view: object) -> str:
        """Return the key."""
        return self._key

    def count(self, code: str, message: str) -> None:
        """Count one more. Raises Refused if that is too many."""
        if not self.allow_request(None, None):
            seconds = max(1, round(self.wait() or 1))
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, code, message.format(seconds=seconds), seconds)


@csrf_exempt
def receive(request: HttpRequest, hook: str) -> HttpResponse:
    """Take a webhook: 202 with the id of its firing as soon as that is stored, whatever becomes of it."""
    try:
        return _received(request, hook)
    except Refused as refused:
        return refused.response()


def _received(request: HttpRequest, hook: str) -> HttpResponse:
    if request.method != "POST":
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "method_not_allowed", "Send webhooks with POST.")
    trigger = Trigger.objects.filter(hook=hook).first()
    if trigger is None:
        raise Refused(HTTPStatus.NOT_FOUND, "not_found", NO_HOOK)
    body, id = _proven(request, trigger)
    if trigger.proof == Proof.GITHUB and request.headers.get("X-GitHub-Event") == "ping":
        return JsonResponse({"firing": None, "state": "pong"})  # GitHub asks whether the address works
    return _answer(request, trigger, id, body)


def _proven(request: HttpRequest, trigger: Trigger) -> tuple[bytes, str]:
    """Return the body of a webhook and its id, if its sender proved who it is. Raises Refused."""
    body = _body(request)
    try:
        return body, proven_id(trigger.proof, request.headers, body, secrets.read(trigger), slots.now())
    except BadProof as error:
        most = SHARED_LIMIT if may_be_shared(request) else FAILURES_A_MINUTE
        failures = _Rate(f"hook-failures-{trigger.pk}-{client_address(request)}", most)
        failures.count("throttled", "Too many webhooks with a wrong proof came from here. Try again in {seconds} s.")
        raise Refused(HTTPStatus.UNAUTHORIZED, error.code, str(error)) from error


def _body(request: HttpRequest) -> bytes:
    """Return the body. Raises Refused for one that is too long, whether or not it says so."""
    length = request.headers.get("Content-Length", "")
    body = b"" if length.isdecimal() and int(length) > BODY_MOST else request.read(BODY_MOST + 1)
    if len(body) > BODY_MOST or (length.isdecimal() and int(length) > BODY_MOST):
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", "A webhook may have at most 1 MB.")
    return body


def _answer(request: HttpRequest, trigger: Trigger, id: str, body: bytes) -> HttpResponse:
    most = settings.AGENTSITE_HOOKS_A_MINUTE
    rate = _Rate(f"hooks-{trigger.pk}", most)
    rate.count("throttled", f"A trigger takes {most} webhooks a minute. Send this one again in {{seconds}} s.")
    try:
        delivered = deliver(trigger.pk, id, (request.content_type or "").lower(), body)
    except Trigger.DoesNotExist:  # it was deleted meanwhile
        raise Refused(HTTPStatus.NOT_FOUND, "not_found", NO_HOOK) from None
    if delivered.refused == "closed":
        raise Refused(HTTPStatus.CONFLICT, "closed", CLOSED)
    if why := WAIT.get(delivered.refused):
        raise Refused(HTTPStatus.TOO_MANY_REQUESTS, delivered.refused, why, RETRY_SECONDS)
    return _accepted(delivered.firing)


def _accepted(firing: Firing) -> HttpResponse:
    return JsonResponse({"firing": firing.pk, "state": firing.state}, status=HTTPStatus.ACCEPTED)
