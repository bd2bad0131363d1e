"""Clients of sockets and streams: a reference client that builds turns from events, and helpers to run one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from conversations.accounts.keys import make_key
from conversations.push.event_reader import last_step
from conversations.push.routing import sockets

T = TypeVar("T")
ORIGIN = "http://testserver"
PATIENCE_SECONDS = 20.0
STATES = {
    "prompt.created": "queued",
    "prompt.started": "running",
    "prompt.resumed": "running",
    "prompt.paused": "waiting_for_approval",
}


async def aside(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run a function as another process would: on another connection, which is closed afterwards."""
    done: T = await database_sync_to_async(function)(*args, **kwargs)
    return done


async def holds(condition: Callable[..., object], *args: Any) -> None:
    """Wait until this condition holds in the database."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await aside(condition, *args):
            pass


class Transcript:
    """Everything a client knows about a conversation, built from events alone, across any number of connections."""

    def __init__(self) -> None:
        self.at = 0
        self.present = 0
        self.prompts: dict[int, dict[str, Any]] = {}
        self.drafts: dict[tuple[int, str], str] = {}
        self.told: list[tuple[int, str]] = []
        self._of_step: list[tuple[int, str]] = []

    def connected(self, present: int) -> None:
        """A connection was opened, when this was the last step: older answers need not stream again."""
        self.present = present
        self.drafts = {}

    def take(self, event: dict[str, Any]) -> None:
        """Apply one event. Fails for a duplicate event, for text that leaves a gap, and for an answer not streamed."""
        if event["type"] == "text.delta":
            draft = self.drafts.get((event["prompt"], event["path"]), "")
            assert event["offset"] <= len(draft), "text is missing"
            self.drafts[event["prompt"], event["path"]] = draft[: event["offset"]] + event["text"]
            return
        assert event["seq"] > self.at, "this event was had already"
        # A step that was only partly received is sent again as a whole.
        if (event["seq"], event["type"]) not in self._of_step:
            self._of_step.append((event["seq"], event["type"]))
            self._fold(event)
        if "id" in event:
            self.at = event["id"]
            self.told += self._of_step
            self._of_step = []

    def _fold(self, event: dict[str, Any]) -> None:
        new: dict[str, Any] = {"stop_reason": None, "outputs": {}}
        prompt = self.prompts.setdefault(event["prompt"], new)
        if event["type"] == "prompt.created":
            prompt["input"] = event["input"]
        if "output" in event:
            output = event["output"]
            prompt["outputs"][output["position"]] = output
            streamed = self.drafts.pop((event["prompt"], output["path"]), None)
            answer = output["type"] == "text" and output["role_hint"] != "system"
            if answer and (streamed is not None or event["seq"] > self.present):
                assert streamed == output["text"], "the deltas are not the text"
        if "stop_reason" in event:
            prompt |= {"stop_reason": event["stop_reason"], "usage": event["usage"]}
            prompt["state"] = event["type"].removeprefix("prompt.")
            self.drafts = {place: text for place, text in self.drafts.items() if place[0] != event["prompt"]}
        prompt["state"] = STATES.get(event["type"], prompt.get("state"))

    def state(self, pk: int) -> str:
        """The state of a prompt; "" before any event about it."""
        state: str = self.prompts.get(pk, {}).get("state", "")
        return state

    def prompt(self, pk: int) -> dict[str, Any]:
        """A prompt as the API has it, as far as events cover it."""
        known = self.prompts[pk]
        return {**known, "outputs": list(_in_reading_order(known["outputs"]))}


def _in_reading_order(outputs: dict[int, dict[str, Any]], parent: str | None = None) -> Iterator[dict[str, Any]]:
    for position in sorted(outputs):
        output = outputs[position]
        if output["parent"] == parent:
            yield output
            if output["type"] == "tool":
                yield from _in_reading_order(outputs, output["path"])


def as_the_api_says(owner: User, *prompts: int) -> list[dict[str, Any]]:
    """The part of `GET /api/prompts/<id>/` that events cover, for each prompt."""
    client = Client()
    client.force_login(owner)
    answers = [client.get(f"/api/prompts/{prompt}/").json() for prompt in prompts]
    return [{name: shown[name] for name in _told_of(shown)} for shown in answers]


def _told_of(prompt: dict[str, Any]) -> tuple[str, ...]:
    ended = prompt["state"] in ("completed", "failed", "cancelled")
    return ("state", "stop_reason", "input", "outputs", *(("usage",) if ended else ()))


def cookie(owner: User) -> str:
    """The session cookie of a signed-in user."""
    client = Client()
    client.force_login(owner)
    return client.cookies["sessionid"].value


class Listener:
    """One open socket."""

    def __init__(self, communicator: WebsocketCommunicator) -> None:
        self._communicator = communicator

    async def receive(self) -> dict[str, Any]:
        """The server's next message to the socket, of any type."""
        received: dict[str, Any] = await self._communicator.receive_output(timeout=PATIENCE_SECONDS)
        return received

    async def text(self) -> str:
        """The next frame."""
        received = await self.receive()
        assert received["type"] == "websocket.send", received
        text: str = received["text"]
        return text

    async def event(self) -> dict[str, Any]:
        """The next event."""
        event: dict[str, Any] = json.loads(await self.text())
        return event

    async def closed(self) -> int | None:
        """The code with which the socket is closed. Earlier frames are skipped."""
        while (received := await self.receive())["type"] != "websocket.close":
            pass
        code: int | None = received.get("code")
        return code

    async def nothing(self) -> bool:
        """Whether nothing more comes for a while."""
        silent: bool = await self._communicator.receive_nothing(timeout=0.5)
        return silent

    async def says(self, text: str) -> None:
        await self._communicator.send_input({"type": "websocket.receive", "text": text})

    async def listen(self, transcript: Transcript, until: Callable[[], bool]) -> None:
        """Receive until this condition holds."""
        while not until():
            transcript.take(await self.event())


@asynccontextmanager
async def opened(
    address: str,
    session: str = "",
    origin: str | None = ORIGIN,
    *,
    key: str = "",
    host: str = "testserver",
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> AsyncIterator[tuple[Listener, dict[str, Any]]]:
    """A socket to this URL, with the server's first answer."""
    headers = [(b"host", host.encode()), *headers]
    headers += [(b"origin", origin.encode())] if origin is not None else []
    headers += [(b"cookie", f"sessionid={session}".encode())] if session else []
    headers += [(b"authorization", f"Bearer {key}".encode())] if key else []
    communicator = WebsocketCommunicator(sockets, address, headers)
    await communicator.send_input({"type": "websocket.connect"})
    listener = Listener(communicator)
    try:
        yield listener, await listener.receive()
    finally:
        await communicator.send_input({"type": "websocket.disconnect", "code": 1000})
        await communicator.wait(timeout=PATIENCE_SECONDS)


@asynccontextmanager
async def following(
    conversation: int, session: str, after: int = 0, transcript: Transcript | None = None
) -> AsyncIterator[Listener]:
    """A socket that receives a conversation's events, for this transcript if one goes on over several sockets."""
    async with opened(f"/ws/conversations/{conversation}/?format=json&after={after}", session) as (listener, first):
        assert first["type"] == "websocket.accept", first
        if transcript:
            transcript.connected(await aside(last_step, conversation))
        yield listener


class Stream:
    """An open stream of server-sent events, parsed as an EventSource does."""

    def __init__(self, parts: AsyncIterator[bytes]) -> None:
        self._parts = parts
        self.last_id = 0

    async def heartbeat(self) -> None:
        """Wait for a comment. Events before it are skipped."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (await anext(self._parts)).startswith(b":"):
                pass

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """The events, until the server ends the stream."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for part in self._parts:
                fields = dict(line.split(": ", 1) for line in part.decode().splitlines() if ": " in line)
                if "data" in fields:
                    event = json.loads(fields["data"])
                    assert fields["event"] == event["type"]
                    assert fields.get("id") == (str(event["id"]) if "id" in event else None)
                    self.last_id = int(fields.get("id", self.last_id))
                    yield event


@asynccontextmanager
async def streamed(address: str, key: str, **headers: str) -> AsyncIterator[Stream]:
    """A stream that is opened with an API key."""
    client: Any = AsyncClient()
    response = await client.get(address, headers={"Authorization": f"Bearer {key}", **headers})
    assert response.status_code == 200, response.content
    assert response["Content-Type"] == "text/event-stream"
    parts = response.streaming_content
    try:
        yield Stream(parts)
    finally:
        await parts.aclose()
        await aside(response.close)


def key_for(owner: User) -> str:
    """An API key of this user, with the scope read."""
    return make_key(owner, "test", ["read"])[1]
