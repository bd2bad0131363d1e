"""The demo model as a bare ASGI app: `POST /v1/responses` and `POST /v1/chat/completions`, for any model's name.

`GET /v1/models` lists the one name that means it, `demo`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from agents.engine.ledger import JSON
from agents.providers.demo import chat, wire
from agents.providers.demo.rules import answer

EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"}
"""The headers of a streamed answer."""

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class Api:
    """One of the two APIs. The rules know only Responses; the other is translated on the way in and out.

    `read` returns the request as the rules read it. `write` turns a response into the JSON of the answer, `events`
    yields the events that stream that JSON for the request, and `end` is the last bytes of a stream.
    """

    read: Callable[[dict[str, JSON]], dict[str, JSON]]
    write: Callable[[dict[str, JSON]], dict[str, JSON]]
    events: Callable[[dict[str, JSON], dict[str, JSON]], Iterator[dict[str, JSON]]]
    end: bytes


APIS = {
    "/v1/responses": Api(lambda body: body, lambda whole: whole, lambda whole, _: wire.events(whole), b""),
    "/v1/chat/completions": Api(chat.as_responses, chat.completion, chat.chunks, b"data: [DONE]\n\n"),
}
"""The APIs by their paths."""

MODELS = "/v1/models"
MODEL: dict[str, JSON] = {"id": "demo", "object": "model", "created": 0, "owned_by": "agentsite"}
"""The demo model, as the API describes a model."""
MISSING = {"/v1/embeddings": "embeddings", "/v1/completions": "completions without a chat"}
"""What the demo model cannot do, by the paths of the APIs for it."""


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one HTTP request (ASGI)."""
    method, path = scope["method"], scope["path"]
    if method == "POST" and path in APIS:
        await _respond(APIS[path], await read_body(receive), send)
    elif method == "GET" and path == MODELS:
        await send_json(send, {"object": "list", "data": [MODEL]})
    elif method == "GET" and path.startswith(f"{MODELS}/"):
        await _describe(path.removeprefix(f"{MODELS}/"), send)
    elif method == "POST" and path in MISSING:
        await _refuse(
            send, 404, f"The demo model has no {MISSING[path]}. Set OPENAI_API_KEY or OPENAI_BASE_URL for a real model."
        )
    else:
        await _refuse(send, 404, f"Invalid URL ({method} {path})")


async def _respond(api: Api, raw: bytes, send: Send) -> None:
    try:
        body = json.loads(raw)
        reply = answer(api.read(body))
        whole = api.write(wire.response(reply, body, len(raw)))
    except Exception as error:  # noqa: BLE001 - a request may have any shape
        return await _refuse(send, 400, f"The demo model cannot read this request: {error!r}")
    if not body.get("stream"):
        return await send_json(send, whole)
    await start(send, 200, EVENT_STREAM)
    for event in api.events(whole, body):
        await send({"type": "http.response.body", "body": wire.sse(event), "more_body": True})
        await asyncio.sleep(reply.pause_seconds)
    return await send({"type": "http.response.body", "body": api.end})


async def _describe(model: str, send: Send) -> None:
    if model == MODEL["id"]:
        await send_json(send, MODEL)
    else:
        await _refuse(send, 404, f"There is no model {model!r} here, only 'demo'.", "model", "model_not_found")


async def _refuse(send: Send, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
    """Send an error in the APIs' shape."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    await send_json(send, {"error": error}, status)


async def read_body(receive: Receive) -> bytes:
    """Return the whole body of a request."""
    chunks, more = [], True
    while more:
        message = await receive()
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(chunks)


async def send_json(send: Send, value: JSON, status: int = 200, headers: dict[str, str] | None = None) -> None:
    """Send a whole response. `headers` are added to its own, or replace them."""
    body = json.dumps(value).encode()
    described = {"content-type": "application/json", "content-length": str(len(body))}
    await start(send, status, described | (headers or {}))
    await send({"type": "http.response.body", "body": body})


async def start(send: Send, status: int, headers: dict[str, str]) -> None:
    """Begin a response."""
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
