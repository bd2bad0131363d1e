"""The listeners of the push benchmark: WebSocket clients, real pages, and a clock that notes each commit."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

LOOK_SECONDS = 0.005
"""Seconds between two polls of the clock. A commit may be that much earlier than the time noted for it."""
OVERLAP = 200
"""Steps that are read again with each poll: on PostgreSQL one may be committed after others with higher ids."""

Piece = tuple[int, str, int]
"""A draft at one moment: prompt, path, number of characters."""
Place = tuple[int, int]
"""A step: conversation, seq."""


@dataclass
class Site:
    """The site's port, and the session cookie of its owner."""

    port: int
    cookie: tuple[str, str]

    @property
    def origin(self) -> str:
        """The address of its pages."""
        return f"http://127.0.0.1:{self.port}"


@dataclass
class Client:
    """One WebSocket on one conversation, in JSON, with everything that arrived and when."""

    conversation: int
    came: list[tuple[float, str]] = field(default_factory=list)

    async def listen(self, site: Site, ready: asyncio.Event) -> None:
        """Collect messages until cancelled."""
        from websockets.asyncio.client import connect

        url = f"ws://127.0.0.1:{site.port}/ws/conversations/{self.conversation}/?after=0&format=json"
        headers = {"Cookie": "=".join(site.cookie)}
        async with connect(
            url, origin=site.origin, additional_headers=headers, compression=None, max_size=None, open_timeout=60
        ) as socket:
            ready.set()
            async for text in socket:
                self.came.append((time.time(), str(text)))

    def events(self) -> list[tuple[float, dict[str, Any]]]:
        """Return the parsed messages that arrived, and forget them."""
        came, self.came = self.came, []
        return [(at, json.loads(text)) for at, text in came]


@asynccontextmanager
async def listening(clients: Sequence[Client], site: Site) -> AsyncIterator[None]:
    """Connect all clients, a few at a time. Raises the error of a client that could not connect."""
    tasks: list[asyncio.Task[None]] = []
    try:
        for first in range(0, len(clients), 10):
            ready = [(client, asyncio.Event()) for client in clients[first : first + 10]]
            tasks += [asyncio.create_task(client.listen(site, event)) for client, event in ready]
            waits = [asyncio.ensure_future(event.wait()) for _, event in ready]
            await asyncio.wait([asyncio.gather(*waits), *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
                    raise SystemExit("The site closed a socket at once. Is the owner signed in?")
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class CommitClock:
    """A clock that notes when each step, and each size of each draft, was first seen in the database."""

    def __init__(self) -> None:
        self.pieces: dict[Piece, float] = {}
        self.steps: dict[Place, float] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> CommitClock:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        from django.db import connection

        last = 0
        while not self._end.wait(LOOK_SECONDS):
            with connection.cursor() as cursor:
                cursor.execute("SELECT prompt_id, path, size FROM conversations_draft")
                pieces, now = cursor.fetchall(), time.time()
                for piece in pieces:
                    self.pieces.setdefault(piece, now)
                cursor.execute(
                    "SELECT id, conversation_id, seq FROM conversations_step WHERE id > %s", [last - OVERLAP]
                )
                steps, now = cursor.fetchall(), time.time()
                for id_, *place in steps:
                    self.steps.setdefault((place[0], place[1]), now)
                    last = max(last, id_)
        connection.close()


@dataclass
class Latencies:
    """Milliseconds until a frame arrives: from the step's recorded time, its commit, and its draft's commit."""

    recorded: list[float] = field(default_factory=list)
    event: list[float] = field(default_factory=list)
    delta: list[float] = field(default_factory=list)

    def add(self, at: float, frame: dict[str, Any], clock: CommitClock) -> None:
        """Add a frame that arrived at this time."""
        if "seq" in frame:
            self.recorded.append((at - datetime.fromisoformat(frame["time"]).timestamp()) * 1000)
            committed = clock.steps.get((frame["conversation"], frame["seq"]))
        else:
            committed = clock.pieces.get((frame["prompt"], frame["path"], frame["offset"] + len(frame["text"])))
        if committed:
            (self.event if "seq" in frame else self.delta).append((at - committed) * 1000)


# Pages

SHOWN = """
    window.shownAt = 0;
    const look = () => { if (document.body && document.body.innerText.includes(%s)) { window.shownAt = Date.now(); } };
    document.addEventListener('DOMContentLoaded', () => new MutationObserver(() => { if (!window.shownAt) look(); })
        .observe(document.body, {childList: true, subtree: true, characterData: true}));
"""
"""A script that notes when a text first appears on the page."""


@asynccontextmanager
async def pages(site: Site, conversations: Sequence[int], last_words: str) -> AsyncIterator[list[Any]]:
    """Open a real page for each of these conversations. Each page notes when it first shows `last_words`."""
    async with AsyncExitStack() as stack:
        opened = []
        if conversations:
            from playwright.async_api import async_playwright

            playwright = await stack.enter_async_context(async_playwright())
            browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            stack.push_async_callback(browser.close)
            context = await browser.new_context()
            name, value = site.cookie
            await context.add_cookies([{"name": name, "value": value, "url": site.origin}])
            await context.add_init_script(SHOWN % json.dumps(last_words))
            for conversation in conversations:
                page = await context.new_page()
                await page.goto(f"{site.origin}/c/{conversation}/")
                opened.append(page)
        yield opened


async def shown_at(page: Any) -> float:
    """Return when the page showed the last words, in seconds since 1970."""
    await page.wait_for_function("window.shownAt > 0", timeout=20_000)
    return float(await page.evaluate("window.shownAt")) / 1000
