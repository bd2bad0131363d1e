"""Errors under /api/: all have the shape `{"error": {"code", "message", ...}}`.

Codes are for programs and never change; messages say what to do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist, RequestDataTooBig
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views import defaults
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from agents.engine.ledger import JSON
from agents.passthrough.errors import LONGEST_WAIT, Refused, error_type
from agents.passthrough.routes import POSTED
from agents.passthrough.routes import ROOT as PASSTHROUGH
from conversations.accounts.keys import SCHEME
from conversations.approvals.decisions import Conflict, DecisionRefused
from conversations.database.busy import busy_response, is_busy
from conversations.display.shapes.outputs import Approval, files_of, output_shape
from conversations.files.uploads import BadFile
from conversations.models import GateState
from conversations.prompts.idempotency import KeyReused
from conversations.prompts.killswitch import SiteStopped
from conversations.prompts.listing import BadTitle
from conversations.prompts.start import BadInput, Deactivated, TurnInProgress
from conversations.prompts.startable import InvalidInput, NotAllowed, UnknownPolicy
from conversations.prompts.system_prompts import NotChoosable
from conversations.usage.quotas import OverQuota

ROOT = "/api/"
CONTEXT = "/context/"
"""Where the agent answers OpenAI clients."""
NOT_FOUND = "There is nothing at this address, or it is not yours to see."
CSRF_MISSING = (
    f"Requests with a session need the X-CSRFToken header, with the value of the cookie {settings.CSRF_COOKIE_NAME}."
)
FAILED = "Something went wrong on the server. The details are in its log."


class RequestRefused(exceptions.APIException):  # type: ignore[misc]
    """A request that is refused. `details` are returned next to code and message."""

    def __init__(self, status: int, code: str, message: str, **details: JSON) -> None:
        super().__init__(message, code)
        self.status_code, self.code, self.details = status, code, details

    @property
    def body(self) -> dict[str, JSON]:
        """The error as clients receive it."""
        return {"error": {"code": self.code, "message": str(self.detail), **self.details}}

    @property
    def headers(self) -> dict[str, str]:
        """The headers that go with it."""
        headers = {"WWW-Authenticate": SCHEME.title()} if self.status_code == HTTPStatus.UNAUTHORIZED else {}
        return headers | ({"Retry-After": str(self.details["retry_after"])} if "retry_after" in self.details else {})

    def response(self) -> JsonResponse:
        """Return the answer outside the REST framework: of an async view, or if no view was found."""
        return JsonResponse(self.body, status=self.status_code, headers=self.headers)

    def for_openai(self) -> JsonResponse:
        """Return the answer in the shape that OpenAI's clients read: only `param` and `approval` stand beside it.

        These clients repeat a request by themselves. That is for what passes by itself, and soon.
        """
        fields = self.details.get("fields")
        param = self.details.get("param") or (next(iter(fields), None) if isinstance(fields, dict) else None)
        said = {"message": str(self.detail), "type": error_type(self.status_code), "param": param or None}
        body: dict[str, JSON] = {"error": said | {"code": self.code}}
        if approval := self.details.get("approval"):
            body["approval"] = approval
        wait = self.details.get("retry_after")
        passes = self.status_code == HTTPStatus.GATEWAY_TIMEOUT or (isinstance(wait, int) and wait <= LONGEST_WAIT)
        headers = self.headers if passes else {**self.headers, "X-Should-Retry": "false"}
        return JsonResponse(body, status=self.status_code, headers=headers)


class Invalid(RequestRefused):
    """A request with invalid fields, and why; "" stands for the whole body."""

    def __init__(self, fields: Mapping[str, list[str]]) -> None:
        error_body = "; ".join(f"{name or 'body'}: {' '.join(why)}" for name, why in fields.items())
        super().__init__(400, "invalid", error_body, fields=dict(fields))


def handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return the answer to an exception of a view; None for an unexpected one, which is logged, and answered below."""
    refused = refusal(error)
    if refused is None:
        return None
    set_rollback()
    return Response(refused.body, refused.status_code, headers=refused.headers)


def refusal(error: Exception) -> RequestRefused | None:
    """Return what an exception means to a client; None if it is our own fault."""
    return next((mean(error) for kind, mean in _MEANINGS.items() if isinstance(error, kind)), None)


def _decision(error: DecisionRefused) -> RequestRefused:
    """Return the error of a refused decision. Conflicts include the current state of the approval."""
    if isinstance(error, Conflict) and error.code == "not_pending":
        entry = error.output.entry()
        output = output_shape(entry, error.output.pk, files_of([entry]))
        return RequestRefused(409, error.code, str(error), output=output.json_value())
    if isinstance(error, Conflict):
        code = "already_decided" if error.code in GateState.values else error.code
        if error.code == "cancelled" and error.output.gate == GateState.PENDING:
            code = "turn_stopped"
        return RequestRefused(409, code, str(error), **error.details, approval=Approval.of(error.output).json_value())
    if error.code in ("invalid_input", "invalid_answer"):
        name = error.code.removeprefix("invalid_")
        fields = {f"{name}.{place}".rstrip("."): list(why) for place, why in error.details.items()}
        return RequestRefused(400, error.code, str(error), fields=fields)
    if error.code == "invalid_grant":
        fields = {place: list(why) for place, why in error.details.items()}
        return RequestRefused(400, error.code, str(error), fields=fields)
    status = {"forbidden": 403, "four_eyes": 403, "reauthenticate": 403, "not_found": 404}.get(error.code, 400)
    return RequestRefused(status, error.code, str(error), **error.details)


_CODES = {"parse_error": "malformed", "authentication_failed": "bad_key", "permission_denied": "forbidden"}
"""Our codes, where they differ from those of the framework."""
_MESSAGES = {
    "not_authenticated": "Sign in, or send an API key as `Authorization: Bearer <key>`.",
    "unsupported_media_type": "Send JSON, as `Content-Type: application/json`.",
}
"""Our messages, where they replace those of the framework."""


def of_framework(error: exceptions.APIException) -> RequestRefused:
    """Return what an exception of the REST framework means to a client; a RequestRefused says it itself."""
    if isinstance(error, RequestRefused):
        return error
    code = _CODES.get(error.default_code, error.default_code)
    message = _MESSAGES.get(code, str(error.detail))
    if message.startswith("CSRF Failed"):
        code, message = "csrf_failed", CSRF_MISSING
    details: dict[str, JSON] = {}
    if isinstance(error, exceptions.Throttled) and error.wait:
        details["retry_after"] = int(error.wait) + 1
    return RequestRefused(error.status_code, code, message, **details)


_MEANINGS: dict[type[Exception], Callable[[Any], RequestRefused]] = {
    TurnInProgress: lambda error: RequestRefused(409, "turn_in_progress", str(error), prompt=error.prompt),
    OverQuota: lambda error: RequestRefused(429, "over_quota", str(error)),
    Deactivated: lambda error: RequestRefused(403, "forbidden", str(error)),
    SiteStopped: lambda error: RequestRefused(503, "stopped", str(error)),
    KeyReused: lambda error: RequestRefused(409, "idempotency_conflict", str(error), prompt=error.prompt),
    UnknownPolicy: lambda error: RequestRefused(404, "unknown_policy", str(error)),
    NotAllowed: lambda error: RequestRefused(403, "forbidden", str(error)),
    InvalidInput: lambda error: RequestRefused(
        400, "invalid_input", str(error), fields={f"payload.{at}".rstrip("."): why for at, why in error.fields.items()}
    ),
    BadInput: lambda error: Invalid({"input": [str(error)]}),
    NotChoosable: lambda error: Invalid({"system_prompt": [str(error)]}),
    BadTitle: lambda error: Invalid({"title": [str(error)]}),
    BadFile: lambda error: Invalid({"files": [str(error)]}),
    DecisionRefused: _decision,
    Http404: lambda error: RequestRefused(404, "not_found", NOT_FOUND),
    ObjectDoesNotExist: lambda error: RequestRefused(404, "not_found", NOT_FOUND),
    DjangoPermissionDenied: lambda error: RequestRefused(403, "forbidden", "You do not have permission to do this."),
    RequestDataTooBig: lambda error: RequestRefused(413, "too_large", "The body is too long."),
    exceptions.APIException: of_framework,
}
"""The error of each exception; the first matching class wins."""


# The URLconf's handlers, for requests that no view answered.


def _handler(page: Callable[[HttpRequest, Exception], HttpResponse]) -> Callable[..., HttpResponse]:
    """Return a handler that answers with an error where programs ask, and with Django's page elsewhere."""

    def handle(request: HttpRequest, exception: Exception) -> HttpResponse:
        of_openai = f"{request.path}/".startswith((f"{PASSTHROUGH}/", CONTEXT))  # base URLs have no slash
        if of_openai and isinstance(exception, Http404):
            return _unknown_address(request)
        if not of_openai and not request.path.startswith(ROOT):
            return page(request, exception)
        refused = refusal(exception) or RequestRefused(400, "malformed", "The request cannot be read.")
        return refused.for_openai() if of_openai else refused.response()

    return handle


def _unknown_address(request: HttpRequest) -> HttpResponse:
    """Answer an OpenAI client that asks for something else than the models or the agent."""
    passed_on = ", ".join(f"POST {PASSTHROUGH}{path}" for path in POSTED)
    there_are = f"GET {PASSTHROUGH}/models, {passed_on}"
    if f"{request.path}/".startswith(CONTEXT):
        there_are = f"GET {CONTEXT}models, POST {CONTEXT}chat/completions"
    said = f"Nothing answers {request.method} {request.path}: this site has {there_are}."
    refused = Refused(HTTPStatus.NOT_FOUND, "unknown_address", said)
    return HttpResponse(refused.body, status=refused.status, content_type="application/json")


bad_request = _handler(defaults.bad_request)
permission_denied = _handler(defaults.permission_denied)
page_not_found = _handler(defaults.page_not_found)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form post, or a request with a session, that lacks the CSRF token."""
    if not request.path.startswith(ROOT):
        return render(request, "403_csrf.html", status=HTTPStatus.FORBIDDEN)
    return RequestRefused(HTTPStatus.FORBIDDEN, "csrf_failed", CSRF_MISSING).response()


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer after an internal error. The details are only in the log.

    Also after that of a middleware, e.g. of one that saves the session while the database is busy.
    """
    if is_busy(sys.exc_info()[1]):
        return busy_response(request)
    failed = RequestRefused(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", FAILED)
    if request.path.startswith((CONTEXT, f"{PASSTHROUGH}/")):
        return failed.for_openai()
    return failed.response() if request.path.startswith(ROOT) else defaults.server_error(request)
