"""A running site to attack over its socket, and what that costs it: memory, and disk."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPMessage, HTTPResponse
from pathlib import Path

from tests.agentsite.processes import connect, free_port, run, started, variables

MB = 1024 * 1024
PEOPLE = """
import json
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.test import Client
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from conversations.accounts.keys import make_key
from conversations.models import Scope
from conversations.prompts.start import start_conversation

made = {}
for name in ("ann", "bob", "cat", "dan", "chief"):
    user = User.objects.create_user(name, f"{name}@example.com", is_staff=name == "chief", is_superuser=name == "chief")
    client = Client()
    client.force_login(user)
    made[name] = {
        "key": make_key(user, "attack", Scope.values)[1],
        "session": client.cookies["sessionid"].value,
        "conversation": start_conversation(user).pk,
        "id": user.pk,
        "reset": f"/password/{urlsafe_base64_encode(force_bytes(user.pk))}/{default_token_generator.make_token(user)}/",
    }
print(json.dumps(made))
"""


@dataclass(frozen=True)
class Person:
    """Someone who may enter. `reset` is where their link in an e-mail leads, with which they choose a new password."""

    key: str
    session: str
    conversation: int
    id: int
    reset: str

    @property
    def upload(self) -> str:
        """The path to which their files are sent by a program."""
        return f"/api/conversations/{self.conversation}/prompts/"

    @property
    def bearer(self) -> str:
        """The header with their key."""
        return f"Authorization: Bearer {self.key}"


@dataclass(frozen=True)
class Answer:
    """What a server said."""

    status: int
    headers: HTTPMessage
    text: str


@dataclass(frozen=True)
class Door:
    """A site that listens on `port`, in the process `pid`."""

    port: int
    pid: int
    people: dict[str, Person]

    def open(self, request: str, *headers: str, body: bytes = b"") -> socket.socket:
        """A connection on which this much has been sent."""
        client = connect(self.port)
        client.sendall("\r\n".join([f"{request} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode())
        self.send(client, body)
        return client

    @staticmethod
    def send(client: socket.socket, body: bytes) -> bool:
        """Send it, as far as the server takes it. Returns whether it took everything."""
        with suppress(ConnectionError):
            client.sendall(body)
            return True
        return False

    def ask(self, request: str, *headers: str, body: bytes = b"") -> Answer:
        """The answer to a request."""
        with self.open(request, *headers, body=body) as client:
            return answer(client)

    @property
    def memory(self) -> int:
        """The most bytes that the process has had in memory."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

    @property
    def disk(self) -> int:
        """The bytes of the files that the process has open and nobody else can see."""
        found = 0
        for entry in Path(f"/proc/{self.pid}/fd").iterdir():
            with suppress(OSError):
                if entry.readlink().name.endswith("(deleted)"):
                    found += entry.stat().st_size
        return found


def answer(client: socket.socket) -> Answer:
    """The next answer on a connection."""
    with HTTPResponse(client) as response:
        response.begin()
        return Answer(response.status, response.headers, response.read().decode())


def form(size: int) -> tuple[str, bytes]:
    """The Content-Type and the body of a form with a message and a file of this size."""
    head = (
        '--b\r\nContent-Disposition: form-data; name="input"\r\n\r\nhello\r\n'
        '--b\r\nContent-Disposition: form-data; name="files"; filename="f.bin"\r\n\r\n'
    )
    return "Content-Type: multipart/form-data; boundary=b", head.encode() + b"x" * size + b"\r\n--b--\r\n"


@contextmanager
def site(folder: Path, *command: str, **more: str) -> Iterator[Door]:
    """A site with four people and a superuser, started by a command (agentsite.web if there is none)."""
    environment = variables(folder / "data", PORT=str(port := free_port()), **more)
    made = run("manage.py", "shell", "-v", "0", "-c", PEOPLE, environment=environment)
    assert made.returncode == 0, made.stderr
    people = {name: Person(**values) for name, values in json.loads(made.stdout).items()}
    with started(*(command or ("-m", "agentsite.web")), environment=environment, log=folder / "log") as web:
        connect(port).close()
        door = Door(port, web.pid, people)
        assert door.ask("GET /login/").status == 200  # what Django loads with the first page is not the attack's
        yield door
