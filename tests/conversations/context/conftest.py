"""A site with a web server and a worker, the model server behind it, and clients of both of its APIs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from itertools import count
from typing import Any

import pytest
from openai import OpenAI

from agents.engine.ledger import JSON
from tests.agentsite.processes import PATIENCE_SECONDS, free_port, started, variables, wait_for
from tests.passthrough.site import Console, is_open
from tests.wire.script import Reply, Script
from tests.wire.server import WireServer

NUMBERS = count()
OPENED: list[OpenAI] = []
"""The SDKs of the test that runs, whose connections it closes."""


@dataclass
class Client:
    """A program with a key: OpenAI's SDK, and the site's own API."""

    port: int
    key: str
    history: list[dict[str, str]] = field(default_factory=list)
    place: dict[str, str] = field(default_factory=dict)

    @property
    def base_url(self) -> str:
        """What OpenAI clients are told."""
        return f"http://127.0.0.1:{self.port}/context"

    @property
    def sdk(self) -> OpenAI:
        """OpenAI's SDK, which does not try again by itself."""
        OPENED.append(OpenAI(base_url=self.base_url, api_key=self.key, max_retries=0, timeout=PATIENCE_SECONDS))
        return OPENED[-1]

    def ask(self, messages: list[Any], **more: Any) -> Any:
        """Return the completion of these messages."""
        return self.sdk.chat.completions.create(**{"model": "normal", "messages": messages, **more})

    def say(self, text: str, **more: Any) -> Any:
        """Say something in the client's own conversation, whose texts it keeps and sends along, as clients do."""
        self.history.append({"role": "user", "content": text})
        answer = self.ask(self.history, **more)
        self.history.append({"role": "assistant", "content": answer.choices[0].message.content})
        return answer

    def api(self, path: str, body: JSON = None, method: str = "") -> Any:
        """Return what the site's own API answers."""
        status, said = self.send(method or ("GET" if body is None else "POST"), f"/api/{path}", body)
        assert status < 300, said
        return said

    def send(self, method: str, path: str, body: JSON = None, **headers: str) -> tuple[int, Any]:
        """Return the status and the JSON of an answer."""
        status, _, said = self.raw(method, path, json.dumps(body).encode(), **headers)
        return status, json.loads(said)

    def raw(self, method: str, path: str, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and bytes of an answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        sent = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        try:
            connection.request(method, path, body, sent | {n.replace("_", "-"): v for n, v in headers.items()})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def conversations(self) -> list[Any]:
        """The conversations of the key's owner, the newest first."""
        found: list[Any] = self.api("conversations/")["results"]
        return found

    def prompts(self, conversation: int | str) -> list[Any]:
        """The turns of a conversation, in their order."""
        found: list[Any] = self.api(f"conversations/{conversation}/prompts/?page_size=200")["results"]
        return found

    def approve(self, pk: int) -> None:
        """Approve a call as the key's owner."""
        digest = self.api(f"approvals/{pk}/")["approval"]["digest"]
        self.api(f"approvals/{pk}/approve/", {"digest": digest})

    def waiting(self) -> list[Any]:
        """What waits for a decision."""
        found: list[Any] = self.api("approvals/")["results"]
        return found


@dataclass(frozen=True)
class World:
    """The site and the model behind it."""

    port: int
    model: WireServer
    console: Console

    def client(self, *scopes: str, of: str = "") -> Client:
        """A client with a new key, of a new person if none is named."""
        username = of or f"person{next(NUMBERS)}"
        made = self.console(f"new_key({username!r}, {scopes or ('read', 'chat', 'decide', 'context')!r})")
        return Client(self.port, made["text"])

    def speaks(self, *replies: Reply) -> None:
        """Let the model say this, one answer after the other, and forget what it was asked."""
        self.script(list(replies))

    def script(self, script: Script | list[Reply]) -> None:
        """Let the model answer so, and forget what it was asked."""
        self.model.script = script
        self.model.requests.clear()

    def asked(self) -> list[Any]:
        """The bodies of the requests that the model received."""
        return [each.body for each in self.model.requests]


@pytest.fixture(scope="package")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("context")
    with WireServer() as model:
        environment = variables(
            folder / "data", PORT=str(port := free_port()), OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-of-the-site",
            AGENTSITE_API_STARTS="100000", AGENTSITE_API_REQUESTS="100000",
        )  # fmt: skip
        console, log = Console(environment), folder / "log"
        try:
            with started("manage.py", "serve", environment=environment, log=log) as serve:
                wait_for(lambda: serve.poll() is not None or is_open(port))
                assert serve.poll() is None, log.read_text()
                yield World(port, model, console)
                serve.terminate()
                serve.wait(PATIENCE_SECONDS)
        finally:
            console.stop()
    assert "Traceback" not in log.read_text()


@pytest.fixture
def world(_running: World) -> Iterator[World]:
    """The site, whose model has nothing to say yet."""
    _running.speaks()
    yield _running
    while OPENED:
        OPENED.pop().close()


@pytest.fixture
def client(world: World) -> Client:
    """A client of a new person."""
    return world.client()
