"""Errors of our own, in the shape that OpenAI's clients read: `{"error": {"message", "type", "param", "code"}}`.

Source: platform.openai.com/docs/guides/error-codes.
"""

from __future__ import annotations

import json

SHAPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
"""The `type` of an error by its status. Others below 500 are `invalid_request_error`, and the rest `server_error`."""
LONGEST_WAIT = 60
"""Seconds that OpenAI's clients wait at most. Told to wait longer, they would try again too early, and in vain."""


class Refused(Exception):
    """A request that gets an error from us. `retry_after`: seconds to wait before it is sent again; 0: not by itself.

    `code` is for programs and never changes; the message says what to do, and has nothing of the key.
    """

    def __init__(self, status: int, code: str, message: str, *, param: str | None = None, retry_after: int = 0) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.param, self.retry_after = status, code, message, param, retry_after

    @property
    def body(self) -> bytes:
        """The JSON that the client receives."""
        return error_body(self.status, self.code, self.message, self.param)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers that go with it. Clients send a request again by themselves if they may."""
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(self.body)).encode())]
        if self.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        if self.retry_after:
            headers.append((b"retry-after", str(self.retry_after).encode()))
        if self.retry_after > LONGEST_WAIT:
            headers.append((b"x-should-retry", b"false"))
        return headers


def error_type(status: int) -> str:
    """Return the `type` of an error with this status."""
    return SHAPES.get(status, "invalid_request_error" if status < 500 else "server_error")


def error_body(status: int, code: str, message: str, param: str | None = None) -> bytes:
    """Return the JSON of an error."""
    return json.dumps(
        {"error": {"message": message, "type": error_type(status), "param": param, "code": code}}
    ).encode()
