"""Large, slow and lying request bodies, against a running site whose memory and disk are measured."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.agentsite.processes import PATIENCE_SECONDS, connect, free_port, started, variables, wait_for
from tests.attacks.doors import MB, Answer, Door, answer, form, site

IMPATIENT = """
from agentsite import server, bodies, web

server.HEAD_SECONDS = bodies.BODY_SECONDS = bodies.DROP_SECONDS = 1.0
bodies.BODY_RATE, bodies.ORDINARY_TOGETHER = 10_000_000, 4_000_000
web.run()
"""
ASKING = """
import asyncio, sys
from pathlib import Path
from agentsite import server
from agentsite.webs import listen

class Limits:
    def most(self, method, target):
        return 50_000_000

    def waits(self, target):
        return False

    async def person(self, target, authorization, cookies):
        while not Path(sys.argv[2]).exists():
            await asyncio.sleep(0.02)
        return 1

async def application(scope, receive, send):
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message["body"]), message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})

listener = listen("127.0.0.1", int(sys.argv[1]))
server.PatientServer(application=application, listener=listener, limits=Limits()).run()
"""
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with site(tmp_path_factory.mktemp("bodies")) as door:
        yield door


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """A site that waits a second where it otherwise waits half a minute or more, and has room for 4 MB."""
    with site(tmp_path_factory.mktemp("impatient"), "-c", IMPATIENT) as door:
        yield door


def ends(client: socket.socket) -> bytes:
    """What the server still says, to the end that it makes."""
    said = b""
    try:
        while got := client.recv(65536):
            said += got
    except ConnectionResetError:
        pass
    return said


def test_large_bodies_of_strangers_cost_nothing(door: Door) -> None:
    """Six to the sign-in page, each of 200 MB as it says: refused before they are read, and nothing is kept."""
    memory = door.memory
    with ExitStack() as stack:
        clients = [stack.enter_context(door.open("POST /login/", f"Content-Length: {200 * MB}")) for _ in range(6)]
        for client in clients:
            door.send(client, b"x" * 20 * MB)
        assert door.disk < MB
        assert [answer(client).status for client in clients] == [413] * 6
    assert door.memory - memory < 32 * MB


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "OPTIONS", "POST"])
@pytest.mark.parametrize(
    "path",
    [
        "/workflows/a/",
        "/workflows/a/upload/",
        "/workflows/a/fill/",
        "/api/uploads/",
        "/",
        "/login/",
        "/c/",
        "/api/conversations/",
        "/admin/login/",
        "/static/x",
        "//c/",
        "/nowhere",
        "*",
    ],
)
def test_no_address_takes_more(door: Door, method: str, path: str) -> None:
    """Not of strangers, with whatever method."""
    with door.open(f"{method} {path}", f"Content-Length: {4 * MB}") as client:
        said = client.recv(65536)  # written at once
    assert said.startswith(b"HTTP/1.1 413 ")
    assert (b"too_large" in said) == (path.startswith("/api/") and method != "HEAD")


def test_a_body_without_a_length_is_ordinary(door: Door) -> None:
    """In chunks without end, it is cut at 3 MB; who is known is told how to send more."""
    ann = door.people["ann"]
    for headers, said in (((), "too large"), ((ann.bearer,), "Content-Length")):
        path = ann.upload if headers else "/api/conversations/"
        with door.open(f"POST {path}", JSON, "Transfer-Encoding: chunked", *headers) as client:
            for _ in range(7):
                door.send(client, b"%x\r\n%s\r\n" % (MB // 2, b"x" * (MB // 2)))
            refused = answer(client)
        assert refused.status == 413
        assert said in json.loads(refused.text)["error"]["message"]
        assert door.disk < MB


def test_larger_ones_are_of_known_people(door: Door) -> None:
    """By key or by session, where files are sent, and nowhere else; not by a key or session that is none."""
    ann = door.people["ann"]
    kind, body = form(4 * MB)
    length = f"Content-Length: {len(body)}"
    assert door.ask(f"POST {ann.upload}", kind, length, ann.bearer, body=body).status == 201
    # Let in by the session; Django then misses the token of its form.
    assert door.ask("POST /c/", kind, length, f"Cookie: sessionid={ann.session}", body=body).status == 403
    for address in ("", "upload/", "fill/"):
        path = f"/workflows/project.create/{address}"
        assert door.ask(f"POST {path}", kind, length, f"Cookie: sessionid={ann.session}", body=body).status == 403
    assert door.ask("POST /api/uploads/", kind, length, ann.bearer, body=body).status == 400  # no such field
    for path, header in (
        ("/api/uploads/", f"Authorization: Bearer {ann.key[:-1]}"),
        ("/workflows/project.create/upload/", f"Cookie: sessionid={ann.session[:-1]}"),
        (ann.upload, f"Authorization: Bearer {ann.key[:-1]}"),
        (ann.upload, "Authorization: Bearer"),
        ("/c/", f"Cookie: sessionid={ann.session[:-1]}"),
        ("/c/", f"Cookie: other={ann.session}"),
        ("/api/usage/", ann.bearer),
        ("/account/", f"Cookie: sessionid={ann.session}"),
        ("/login/?next=/c/", f"Cookie: sessionid={ann.session}"),
    ):
        refused = door.ask(f"POST {path}", kind, length, header)  # answered before any of it is sent
        assert refused.status == 413, path


def test_nothing_is_read_before_it_is_known_who_sends_it(tmp_path: Path) -> None:
    """The connection is at a standstill meanwhile; then the body arrives whole."""
    port, known, body = free_port(), tmp_path / "known", b"x" * 40_000_000
    command = "-c", ASKING, str(port), str(known)
    with started(*command, environment=variables(tmp_path), log=tmp_path / "log") as server:
        connect(port).close()
        door, sent = Door(port, server.pid, {}), 0
        with door.open("POST /", f"Content-Length: {len(body)}") as client:
            client.settimeout(1)
            with suppress(TimeoutError):  # what the system's own buffers hold
                while sent < len(body):
                    sent += client.send(body[sent : sent + MB])
            assert sent < len(body)
            assert door.disk < MB
            known.touch()
            client.settimeout(PATIENCE_SECONDS)
            client.sendall(body[sent:])
            assert answer(client).text == str(len(body))


def test_who_cannot_be_looked_up_is_told_so(tmp_path: Path) -> None:
    """The database is away: 503, and when to try again."""
    environment = variables(tmp_path / "data", PORT=str(port := free_port()), DATABASE_URL="postgres://127.0.0.1:1/x")
    with started("-m", "agentsite.web", environment=environment, log=tmp_path / "log") as web:
        door = Door(port, web.pid, {})
        refused = door.ask("POST /c/", f"Content-Length: {4 * MB}", "Cookie: sessionid=x" + "y" * 31)
        assert (refused.status, refused.headers["Retry-After"]) == (503, "10")
        assert "its database does not answer" in refused.text


def test_only_a_few_at_a_time(door: Door) -> None:
    """Two of a person, six of the site; the next are told when to try again, and a free place is given."""
    length = f"Content-Length: {5 * MB}"

    def begin(stack: ExitStack, name: str) -> socket.socket:
        person = door.people[name]
        client = stack.enter_context(door.open(f"POST {person.upload}", length, person.bearer, "Expect: 100-continue"))
        assert client.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        return client

    def refused(name: str) -> Answer:
        return door.ask(f"POST {door.people[name].upload}", length, door.people[name].bearer, "Expect: 100-continue")

    with ExitStack() as stack:
        first, _second = begin(stack, "ann"), begin(stack, "ann")
        own = refused("ann")
        assert (own.status, own.headers["Retry-After"]) == (429, "10")
        assert json.loads(own.text)["error"]["code"] == "throttled"
        for name in ("bob", "bob", "cat", "cat"):
            begin(stack, name)
        full = refused("dan")
        assert (full.status, full.headers["Retry-After"]) == (503, "10")
        assert json.loads(full.text)["error"]["code"] == "busy"
        first.close()
        wait_for(lambda: _is_let_in(door, "dan", length))


def _is_let_in(door: Door, name: str, length: str) -> bool:
    person = door.people[name]
    with door.open(f"POST {person.upload}", length, person.bearer, "Expect: 100-continue") as client:
        return client.recv(12) == b"HTTP/1.1 100"


def test_uploads_do_not_go_through_memory(tmp_path: Path) -> None:
    """One of 100 MB costs the web server a few, not a multiple of them."""
    with site(tmp_path, AGENTSITE_UPLOAD_MB="120") as door:
        ann = door.people["ann"]
        kind, body = form(5 * MB)
        assert door.ask(f"POST {ann.upload}", kind, f"Content-Length: {len(body)}", ann.bearer, body=body).status == 201
        memory = door.memory
        bob = door.people["bob"]
        kind, body = form(100 * MB)
        assert door.ask(f"POST {bob.upload}", kind, f"Content-Length: {len(body)}", bob.bearer, body=body).status == 201
        assert door.memory - memory < 40 * MB


def test_a_stranger_is_never_asked_to_go_on(door: Door) -> None:
    """`Expect: 100-continue` is answered with the refusal alone."""
    with door.open("POST /login/", f"Content-Length: {4 * MB}", "Expect: 100-continue") as client:
        assert client.recv(12) == b"HTTP/1.1 413"


def test_a_second_request_on_a_connection_is_limited_too(door: Door) -> None:
    """Sent together with the first, which is answered."""
    ann = door.people["ann"]
    second = f"POST {ann.upload} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {4 * MB}\r\n"
    for header, status in (("", 413), (f"{ann.bearer}\r\n", 415)):  # 415: it arrives
        with door.open("GET /login/", body=f"{second}{header}\r\n".encode() + b"x" * 4 * MB) as client:
            said = b""
            while f"\nHTTP/1.1 {status} ".encode() not in b"\n" + said[1:]:
                got = client.recv(65536)
                assert got, said
                said += got
            assert said.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 4", "Content-Length: 400000000"),
        ("Content-Length: 4", "Transfer-Encoding: chunked"),
        ("Content-Length: -4",),
        ("Content-Length: +4",),
        ("Content-Length: 4 4",),
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        (f"Content-Length: {'9' * 6000}",),
        ("X: " + "y" * 20_000,),
        tuple(f"X{number}: y" for number in range(600)),
    ],
    ids=lambda headers: headers[-1][:30],
)
def test_headers_that_lie_end_the_connection(door: Door, headers: tuple[str, ...]) -> None:
    """With 400 or without a word, and never with a page."""
    with door.open("POST /login/", *headers, body=b"abcd") as client:
        said = ends(client)
    assert said in (b"", b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert door.ask("GET /healthz").status in (200, 503)


def test_a_form_of_countless_parts_is_refused(door: Door) -> None:
    """An ordinary body of 20,000 fields, as a form of either kind."""
    ann = door.people["ann"]
    part = b'--b\r\nContent-Disposition: form-data; name="a"%s\r\n\r\n1\r\n'
    for kind, body in (
        ("multipart/form-data; boundary=b", part % b"" * 20_000 + b"--b--\r\n"),
        ("multipart/form-data; boundary=b", part % b'; filename="f"' * 20_000 + b"--b--\r\n"),
        ("application/x-www-form-urlencoded", b"a=1&" * 20_000),
    ):
        headers = f"Content-Type: {kind}", f"Content-Length: {len(body)}"
        assert door.ask(f"POST {ann.upload}", *headers, ann.bearer, body=body).status in (400, 415)
        assert door.ask("POST /login/", *headers, body=body).status in (400, 403)


def test_the_sender_does_not_choose_the_prefix_of_links(door: Door) -> None:
    """Daphne would take it from a header."""
    assert "/elsewhere" not in door.ask("GET /login/", "Daphne-Root-Path: /elsewhere").text
    assert door.ask("GET /", "Daphne-Root-Path: /elsewhere").headers["Location"].startswith("/login/")


def test_what_never_ends_is_ended(impatient: Door) -> None:
    """Nothing, half a head, bytes that trickle in, half a body: each connection ends, and nothing is kept."""
    with ExitStack() as stack:
        silent = stack.enter_context(impatient.open("GET /login/"))
        assert answer(silent).status == 200  # and then nothing
        half = stack.enter_context(impatient.open("POST /login/", "Content-Length: 2000000", body=b"x" * 1_000_000))
        trickle = stack.enter_context(socket.create_connection(("127.0.0.1", impatient.port)))
        wait_for(lambda: not impatient.send(trickle, b"G"))
        refused = stack.enter_context(impatient.open("POST /login/", f"Content-Length: {200 * MB}"))
        wait_for(lambda: not impatient.send(refused, b"x" * 1000))
        assert answer(half).status == 408
        assert ends(half) == b""
        assert ends(silent) == b""
    wait_for(lambda: impatient.disk < 100_000)


def test_many_bodies_do_not_fill_the_disk(impatient: Door) -> None:
    """Together they have a limit; who signs in meanwhile is not shut out."""
    length = f"Content-Length: {2 * MB}"
    with ExitStack() as stack:
        clients = [stack.enter_context(impatient.open("POST /login/", length)) for _ in range(6)]
        for client in clients:
            impatient.send(client, b"x" * (2 * MB - 1))
        assert impatient.disk < 6 * MB
        kind = "Content-Type: application/x-www-form-urlencoded"
        assert impatient.ask("POST /login/", kind, "Content-Length: 60000", body=b"a" * 60_000).status == 403
        statuses = {answer(client).status for client in clients}
    assert statuses == {503, 408}


def test_a_body_that_asks_for_a_socket_holds_nothing(door: Door) -> None:
    """Daphne hands such a connection over, and the room of its body was never given back."""
    before = door.disk
    for _ in range(100):
        asked = door.ask(
            "POST /ws/nowhere/", "Upgrade: websocket", "Connection: Upgrade", f"Content-Length: {3 * MB}", body=b"x" * 9
        )
        assert asked.status == 400
    sent = door.ask("POST /api/conversations/", JSON, f"Content-Length: {MB}", body=b" " * MB)
    assert sent.status in (401, 403)
    wait_for(lambda: door.disk <= before)


@pytest.mark.parametrize(
    "type", ["multipart/form-data; boundary=b", "application/x-www-form-urlencoded", "application/json"]
)
@pytest.mark.parametrize("charset", ["punycode", '"PUNYCODE"', "idna", "zlib", "rot13", "utf-16"])
def test_a_body_in_another_charset_is_not_read(door: Door, type: str, charset: str) -> None:
    """Decoding 1 MB of punycode took the web server more than a minute; others were errors of the site."""
    headers = (f"Content-Type: {type}; charset={charset}", "Content-Length: 4")
    refused = door.ask("POST /login/", *headers, body=b"a=b1")
    assert refused.status == 415
    assert "UTF-8" in refused.text


def test_the_usual_charsets_are_read(door: Door) -> None:
    for charset in ("utf-8", "UTF-8", '"utf8"', "us-ascii"):
        headers = (f"Content-Type: application/json; charset={charset}", "Content-Length: 2")
        assert door.ask("POST /api/conversations/", *headers, body=b"{}").status in (401, 403)
