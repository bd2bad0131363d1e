"""The demo model's server as a bare ASGI app.

It serves `POST /v1/responses`, `POST /v1/chat/completions`, `GET /v1/models`, and `GET /requests`, which returns the
requests that it received.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.engine.ledger import JSON
from agents.providers.demo import chat, chat_request, request, wire
from agents.providers.demo.refusals import RequestError, error_body
from agents.providers.demo.script import Refusal, Reply, Script

MODEL = "demo"
"""The name under which the server lists its one model. It answers requests for any name."""

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass(frozen=True)
class RecordedRequest:
    """A received request: its time (seconds since 1970), the client's port, its headers and its bytes.

    The names of headers are in lower case.
    """

    time: float
    client_port: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> JSON:
        """The body as JSON, or None. Parsed again each time: keeping it would take ten times the memory."""
        try:
            return json.loads(self.raw)
        except ValueError:
            return None

    def as_json(self) -> dict[str, JSON]:
        """Return the request for other processes and for logs, without the API key."""
        headers = {name: value for name, value in self.headers.items() if name != "authorization"}
        return {"time": self.time, "headers": headers, "body": self.body}


@dataclass(frozen=True)
class Api:
    """One of the two APIs. Scripts know only Responses; the other is translated on the way in and out.

    `check` raises RequestError for an invalid request, with or without `strict_turns`. `read` returns the request as
    scripts read it. `write` turns a response into the JSON of the answer, `events` yields the events that stream that
    JSON for the request, and `end` is the last bytes of a stream.
    """

    check: Callable[..., None]
    read: Callable[[dict[str, JSON]], dict[str, JSON]]
    write: Callable[[dict[str, JSON]], dict[str, JSON]]
    events: Callable[[dict[str, JSON], dict[str, JSON]], Iterator[dict[str, JSON]]]
    end: bytes


RESPONSES = Api(request.check, lambda body: body, lambda whole: whole, lambda whole, _: wire.events(whole), b"")
CHAT = Api(chat_request.check, chat.as_responses, chat.completion, chat.chunks, b"data: [DONE]\n\n")


@dataclass
class Wire:
    """The ASGI app. Keeps the last `keep` requests in `requests`, and appends each to the file `log` as a line of JSON.

    With `strict_turns` it also refuses histories that the real APIs accept and the strictest servers do not.
    """

    script: Script
    keep: int = 0
    log: Path | None = None
    strict_turns: bool = False
    requests: deque[RecordedRequest] = field(init=False)

    def __post_init__(self) -> None:
        self.requests = deque(maxlen=self.keep)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (ASGI)."""
        match scope["method"], scope["path"]:
            case "POST", "/v1/responses":
                await self._respond(RESPONSES, scope, receive, send)
            case "POST", "/v1/chat/completions":
                await self._respond(CHAT, scope, receive, send)
            case "GET", "/v1/models":
                model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "agentsite"}
                await _send_json(send, {"object": "list", "data": [model]})
            case "GET", "/requests":
                await _send_json(send, [asked.as_json() for asked in self.requests])
            case method, path:
                await _send_json(send, error_body(f"Invalid URL ({method} {path})", None), 404)

    async def _respond(self, api: Api, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        asked = RecordedRequest(time.time(), scope["client"][1], headers, await _read(receive))
        self._remember(asked)
        body = asked.body
        reply = self._choose(api, body)
        await asyncio.sleep(reply.delay_seconds)
        if reply.refusal:
            refusal = reply.refusal
            kind = "invalid_request_error" if refusal.status < 500 else "server_error"
            error = error_body(refusal.message, refusal.code or None, kind=kind, param=refusal.param)
            return await _send_json(send, error, refusal.status, refusal.headers)
        whole = api.write(wire.response(reply, api.read(body), len(asked.raw)))
        if body.get("stream"):
            events = api.events(whole, body) if reply.events is None else reply.events
            return await _send_stream(send, reply, events, api.end)
        return await _send_json(send, whole)

    def _remember(self, asked: RecordedRequest) -> None:
        self.requests.append(asked)
        if self.log:
            with self.log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(asked.as_json()) + "\n")

    def _choose(self, api: Api, body: JSON) -> Reply:
        try:
            api.check(body, strict_turns=self.strict_turns)
            return self.script(api.read(body))
        except RequestError as error:
            return Reply(refusal=Refusal(400, error.code or "", error.message, param=error.param))
        except Exception as error:  # noqa: BLE001 - a script is a test's own code: its error is reported, not retried
            return Reply(refusal=Refusal(400, "script_failed", f"The script failed: {error!r}"))


async def _read(receive: Receive) -> bytes:
    chunks, more = [], True
    while more:
        message = await receive()
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(chunks)


async def _send_json(send: Send, value: JSON, status: int = 200, headers: dict[str, str] | None = None) -> None:
    body = json.dumps(value).encode()
    described = {"content-type": "application/json", "content-length": str(len(body))}
    await _start(send, status, described | (headers or {}))
    await send({"type": "http.response.body", "body": body})


async def _send_stream(send: Send, reply: Reply, events: Iterable[JSON], end: bytes) -> None:
    """Send the events at the reply's pace, until the stream is to break; `end` follows the last event."""
    await _start(send, 200, {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store"})
    waiting: list[bytes] = []
    broken = reply.break_after == 0
    for number, event in enumerate(() if broken else events, start=1):
        waiting.append(wire.sse(event))
        broken = _breaks_after(reply, number, event)
        if broken:
            break
        if reply.pause_seconds:
            await send({"type": "http.response.body", "body": waiting.pop(), "more_body": True})
            await asyncio.sleep(reply.pause_seconds)
    if not broken:
        waiting.append(end)
    # The rest is sent at once: one write instead of twenty. A response that stays open is cut by the server.
    cut = broken and reply.break_how == "cut"
    await send({"type": "http.response.body", "body": b"".join(waiting), "more_body": cut})


def _breaks_after(reply: Reply, number: int, event: JSON) -> bool:
    if isinstance(reply.break_after, str):
        return bool(event.get("type") == reply.break_after)
    return reply.break_after == number


async def _start(send: Send, status: int, headers: dict[str, str]) -> None:
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
