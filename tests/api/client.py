"""A test client of the API."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from conversations.accounts.keys import make_key
from conversations.models import Scope

JSON = "application/json"


class Api:
    """Sends JSON with these headers. `client` may have a session as well."""

    def __init__(self, key: str = "", client: Client | None = None) -> None:
        self.key, self.client = key, client or Client(raise_request_exception=False)

    def get(self, path: str, **headers: str) -> Any:
        return self.client.get(path, headers=self._with_key(headers))

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        """`body` is sent as JSON; text and bytes are sent unchanged."""
        raw = body if isinstance(body, str | bytes) else json.dumps({} if body is None else body)
        return self.client.post(path, raw, content_type=JSON, headers=self._with_key(headers))

    def send(self, path: str, fields: dict[str, Any], **headers: str) -> Any:
        """Post a form; its fields may be files."""
        return self.client.post(path, fields, headers=self._with_key(headers))

    def delete(self, path: str) -> Any:
        return self.client.delete(path, headers=self._with_key({}))

    def _with_key(self, headers: dict[str, str]) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return ({"Authorization": f"Bearer {self.key}"} if self.key else {}) | named


def with_key(user: User, *scopes: str) -> Api:
    return Api(make_key(user, "a program", scopes or Scope.values)[1])


def error_of(response: Any, status: int) -> dict[str, Any]:
    """Return the error of an answer with this status, after checking its shape."""
    assert response.status_code == status, (response.status_code, response.content[:500])
    assert response["Content-Type"] == JSON
    body = json.loads(response.content)
    assert list(body) == ["error"]
    error: dict[str, Any] = body["error"]
    assert error["code"] == error["code"].lower()
    assert error["message"].endswith((".", "`")) or "." in error["message"], error
    return error


def said(response: Any, status: int) -> str:
    """Return the code of an error."""
    code: str = error_of(response, status)["code"]
    return code
