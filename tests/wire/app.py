"""The wire server as an ASGI app: the demo model's, with a script, strict checks and a memory of its requests.

Besides what the demo model's app serves, there is `GET /requests`: the requests that it received.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agents.engine.ledger import JSON
from agents.providers.demo import app as demo
from agents.providers.demo import wire
from agents.providers.demo.app import Api, Receive, Scope, Send, send_json
from tests.wire import answers, chat_request, request
from tests.wire.refusals import RequestError, error_body
from tests.wire.script import Refusal, Reply, Script


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


RESPONSES = replace(demo.APIS["/v1/responses"], events=lambda whole, _: wire.events(whole, of_item=answers.item_events))
CHAT = replace(demo.APIS["/v1/chat/completions"], write=answers.completion)

Check = Callable[..., None]
APIS: dict[str, tuple[Api, Check]] = {
    "/v1/responses": (RESPONSES, request.check),
    "/v1/chat/completions": (CHAT, chat_request.check),
}
"""The APIs by their paths, each with a check that raises RequestError, with or without `strict_turns`."""


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
        method, path = scope["method"], scope["path"]
        if method == "POST" and path in APIS:
            await self._respond(*APIS[path], scope, receive, send)
        elif (method, path) == ("GET", "/requests"):
            await send_json(send, [asked.as_json() for asked in self.requests])
        else:
            await demo.app(scope, receive, send)

    async def _respond(self, api: Api, check: Check, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        asked = RecordedRequest(time.time(), scope["client"][1], headers, await demo.read_body(receive))
        self._remember(asked)
        body = asked.body
        reply = self._choose(api, check, body)
        await asyncio.sleep(reply.delay_seconds)
        if reply.refusal:
            refusal = reply.refusal
            kind = "invalid_request_error" if refusal.status < 500 else "server_error"
            error = error_body(refusal.message, refusal.code or None, kind=kind, param=refusal.param)
            return await send_json(send, error, refusal.status, refusal.headers)
        whole = api.write(answers.response(reply, api.read(body), len(asked.raw)))
        if body.get("stream"):
            events = api.events(whole, body) if reply.events is None else reply.events
            return await _send_stream(send, reply, events, api.end)
        return await send_json(send, whole)

    def _remember(self, asked: RecordedRequest) -> None:
        self.requests.append(asked)
        if self.log:
            with self.log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(asked.as_json()) + "\n")

    def _choose(self, api: Api, check: Check, body: Any) -> Reply:
        try:
            check(body, strict_turns=self.strict_turns)
            return Reply.of(self.script(api.read(body)))
        except RequestError as error:
            return Reply(refusal=Refusal(400, error.code or "", error.message, param=error.param))
        except Exception as error:  # noqa: BLE001 - a script is a test's own code: its error is reported, not retried
            return Reply(refusal=Refusal(400, "script_failed", f"The script failed: {error!r}"))


async def _send_stream(send: Send, reply: Reply, events: Iterable[JSON], end: bytes) -> None:
    """Send the events at the reply's pace, until the stream is to break; `end` follows the last event."""
    await demo.start(send, 200, demo.EVENT_STREAM)
    waiting: list[bytes] = []
    broken = reply.break_after == 0
    for number, event in enumerate(() if broken else events, start=1):
        waiting.append(event if isinstance(event, bytes) else wire.sse(event))
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
