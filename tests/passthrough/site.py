"""A site's web process in front of a model server, a console into its database, and clients of both."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPMessage
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from openai import AsyncOpenAI, OpenAI

from tests.agentsite.processes import PATIENCE_SECONDS, ROOT, free_port, started, variables, wait_for
from tests.attacks.doors import Door

UPSTREAM_KEY = "sk-of-the-site-0123456789abcdef"
ALIASES = {"fast": "real-model", "quoted": 'real "model" \\ ü'}
NUMBERS = count()
HTTPS = "X-Forwarded-Proto: https"
"""What a proxy says that took a request over HTTPS."""

CONSOLE = """
import json, sys
from datetime import timedelta
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from conversations.accounts.keys import make_key
from agents.models import SystemPrompt
from conversations.models import ApiKey, PassthroughUsage, Quota, Scope

def new_key(username, scopes=("passthrough",), **fields):
    user, _ = User.objects.get_or_create(username=username, defaults={"email": f"{username}@example.com"})
    key, text = make_key(user, "wire", Scope.values)
    ApiKey.objects.filter(pk=key.pk).update(**{"scopes": list(scopes), **fields})
    return {"pk": key.pk, "user": user.pk, "text": text}

def new_session(username):
    client = Client()
    client.force_login(User.objects.create_user(username, f"{username}@example.com"))
    return client.cookies["sessionid"].value

for line in sys.stdin:
    try:
        said = {"value": eval(json.loads(line))}
    except Exception as error:
        said = {"error": repr(error)}
    print(json.dumps(said, default=str), flush=True)
"""
"""A program that evaluates expressions in a site's database, one a line."""


@dataclass(frozen=True)
class Key:
    """An API key of a person of the site."""

    pk: int
    user: int
    text: str


class Console:
    """The ORM of a site, in a process of its own."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "manage.py", "shell", "-v", "0", "-c", CONSOLE],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, expression: str) -> Any:
        """Return the value of a Python expression, as JSON knows it."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(expression) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        assert "error" not in said, said
        return said["value"]

    def stop(self) -> None:
        """End the process."""
        self._process.communicate(timeout=PATIENCE_SECONDS)


@dataclass(frozen=True)
class Leg:
    """A way to the model server: straight, or through the site. Clients differ in the address and the key only."""

    name: str
    url: str
    key: str

    def sdk(self, **options: Any) -> OpenAI:
        """Return a client of OpenAI's SDK that never tries again by itself, unless told."""
        return OpenAI(base_url=self.url, api_key=self.key, **{"max_retries": 0, **options})

    def async_sdk(self, **options: Any) -> AsyncOpenAI:
        """Return the same for coroutines."""
        return AsyncOpenAI(base_url=self.url, api_key=self.key, **{"max_retries": 0, **options})

    @property
    def bearer(self) -> dict[str, str]:
        """The header with the key."""
        return {"authorization": f"Bearer {self.key}"}

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Raw:
        """Return the answer as it came, nothing decoded, to a request with exactly these bytes as its body."""
        there = urlsplit(self.url)
        connection = HTTPConnection(there.netloc, timeout=PATIENCE_SECONDS)
        described = {"content-type": "application/json"} if body else {}
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, there.path + path, body or None, described | self.bearer | named)
            answer = connection.getresponse()
            return Raw(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def post(self, body: bytes, path: str = "/chat/completions", **headers: str) -> Raw:
        """Return the answer to a POST of these bytes."""
        return self.send("POST", path, body, **headers)

    def streaming(self, body: bytes, path: str = "/chat/completions") -> StreamedAnswer:
        """Begin a request whose answer the caller reads. To be used in a `with`."""
        return StreamedAnswer(self, body, path)


@dataclass(frozen=True)
class Raw:
    """An answer, byte for byte."""

    status: int
    headers: HTTPMessage
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        """The error in it, in the shape of the provider: exactly these four fields."""
        found = json.loads(self.body)["error"]
        assert found.keys() == {"message", "type", "param", "code"}
        assert found["message"]
        assert isinstance(found, dict)
        return found


class StreamedAnswer:
    """An answer that is still coming."""

    def __init__(self, leg: Leg, body: bytes, path: str) -> None:
        self._client = httpx2.Client(timeout=PATIENCE_SECONDS)
        headers = {"content-type": "application/json", **leg.bearer}
        self._stream = self._client.stream("POST", leg.url + path, content=body, headers=headers)

    def __enter__(self) -> httpx2.Response:
        return self._stream.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)
        self._client.close()


@dataclass(frozen=True)
class Site:
    """A site that runs in front of a model server."""

    door: Door
    console: Console
    secrets: list[str] = field(default_factory=list)  # all keys that were ever made

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.door.port}"

    def key(self, scopes: tuple[str, ...] = ("passthrough",), **fields: Any) -> Key:
        """Return a new key of a new person. `fields` are set in its row."""
        username = f"person{next(NUMBERS)}"
        made = self.console(f"new_key({username!r}, {scopes!r}, **{fields!r})")
        self.secrets.append(made["text"])
        return Key(**made)

    def leg(self, key: Key | None = None) -> Leg:
        """Return the way through the site, with a new person's key if none is given."""
        return Leg("site", f"{self.url}/v1", (key or self.key()).text)

    def usage(self, key: Key, model: str | None = None) -> dict[str, int]:
        """Return what was counted for a key so far, all minutes together."""
        fields = ("requests", "answers", "estimated", *("input_tokens", "cached_tokens", "output_tokens"))
        names = (*fields, "reasoning_tokens")
        only = {"key_id": key.pk} | ({} if model is None else {"model": model})
        rows = self.console(f"list(PassthroughUsage.objects.filter(**{only!r}).values(*{names!r}))")
        return {name: sum(row[name] for row in rows) for name in names}


def is_open(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running(folder: Path, model_server: str, **more: str) -> Iterator[Site]:
    """A site in front of the model server at this address. At its end its log has no failure and no key."""
    environment = variables(
        folder / "data",
        PORT=str(port := free_port()),
        OPENAI_BASE_URL=model_server,
        AGENTSITE_PASSTHROUGH_ALIASES=",".join(f"{name}={model}" for name, model in ALIASES.items()),
        **{"OPENAI_API_KEY": UPSTREAM_KEY, **more},
    )
    console = Console(environment)
    log = folder / "log"
    try:
        with started("-m", "agentsite.web", environment=environment, log=log) as web:
            wait_for(lambda: web.poll() is not None or is_open(port))
            assert web.poll() is None, log.read_text()
            site = Site(Door(port, web.pid, {}), console)
            assert site.door.ask("GET /login/", HTTPS).status == 200  # what Django loads with the first page
            yield site
            assert web.poll() is None
    finally:
        console.stop()
    said = log.read_text()
    assert "Traceback" not in said
    for secret in (UPSTREAM_KEY, *site.secrets):
        assert secret not in said
