"""Refusals: what the web server answers to a request that it does not take, mostly for its body."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus

from agents.passthrough.errors import error_body

ORDINARY_MOST = 3 * 1024 * 1024
"""Bytes of a body that anybody may send."""
RETRY_SECONDS = 10
"""When to try again, for who is refused because of others."""


@dataclass(frozen=True)
class Refusal:
    """Why a request is not taken: a status, the code for programs and the sentence for people."""

    status: HTTPStatus
    code: str
    message: str
    retry_after: int = 0  # seconds; 0: not later either

    def response(self, method: bytes, target: bytes) -> bytes:
        """Return the whole answer; where programs ask, in the shape of all errors there."""
        kind, text = "text/plain; charset=utf-8", self.message
        if target.startswith((b"/api/", b"/hooks/")):
            error = {"code": self.code, "message": self.message}
            kind = "application/json"
            text = json.dumps({"error": error | ({"retry_after": self.retry_after} if self.retry_after else {})})
        elif target.startswith((b"/v1/", b"/context/")):
            kind, text = "application/json", error_body(self.status, self.code, self.message).decode()
        head = [
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(text)}",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
            *([f"Retry-After: {self.retry_after}"] if self.retry_after else []),
        ]
        return "\r\n".join([*head, "", "" if method == b"HEAD" else text]).encode("ascii")


_ORDINARY = f"{ORDINARY_MOST // 1024**2} MB"
TOO_LARGE = Refusal(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "too_large",
    "This request is too large for the site. Send less, or send it in parts.",
)
STRANGER = Refusal(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "too_large",
    f"Only people who are signed in, and programs with a valid API key, may send more than {_ORDINARY}.",
)
NO_LENGTH = Refusal(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "too_large",
    f"A request with more than {_ORDINARY} must say how long it is: send it with a Content-Length.",
)
OWN_AT_ONCE = Refusal(
    HTTPStatus.TOO_MANY_REQUESTS,
    "throttled",
    "You have as many large requests under way as one person may. Send this one again when one of them is done.",
    RETRY_SECONDS,
)
BUSY = Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "busy",
    "The site is already receiving as many large requests as it can. Send this one again in a moment.",
    RETRY_SECONDS,
)
UNKNOWN = Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "busy",
    "The site cannot look up who sends this request, because its database does not answer. Send it again in a moment.",
    RETRY_SECONDS,
)
UPGRADED = Refusal(HTTPStatus.BAD_REQUEST, "no_body", "A request that opens a socket has no body. Send it without one.")
CHARSET = Refusal(
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "charset",
    "The site reads only UTF-8. Send this request in that charset.",
)
LONG_HEADER = Refusal(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "long_header",
    "The Content-Type or the Accept of this request is longer than the site reads. Send a shorter one.",
)
TINY_PIECES = Refusal(
    HTTPStatus.BAD_REQUEST, "tiny_pieces", "This request arrives in too many small pieces. Send it in larger ones."
)
TOO_SLOW = Refusal(
    HTTPStatus.REQUEST_TIMEOUT, "too_slow", "This request arrived too slowly, so the site stopped waiting for it."
)
