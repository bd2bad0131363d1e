"""What an attack on `/v1` found, and what stands in its way since."""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.agentsite.processes import wait_for
from tests.passthrough.clients import PLAIN, begun
from tests.passthrough.site import UPSTREAM_KEY, Leg, Site, running
from tests.passthrough.upstream import EVENTS, JSON, Answer, Gate, Upstream

FORM = "application/x-www-form-urlencoded"
LEAK = b'{"error": {"message": "Wrong key: %s"}}' % UPSTREAM_KEY.encode()


@pytest.mark.parametrize(
    "kind", [FORM, "multipart/form-data; boundary=b", "text/plain", "application/json; charset=utf-7"]
)
def test_a_body_that_a_server_could_read_as_something_else(upstream: Upstream, leg: Leg, kind: str) -> None:
    """A form may name another model in the middle of a text."""
    refused = leg.post(b'{"model": "m", "x": "&model=secret&"}', content_type=kind)
    assert (refused.status, refused.error["code"]) == (415, "charset" if "utf-7" in kind else "not_json")
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (("Content-Type: application/json", "Content-Type: text/plain"), "not_json"),
        (("Content-Encoding: identity", "Content-Encoding: deflate"), "encoded_body"),
    ],
)
def test_two_headers_that_say_different_things(
    upstream: Upstream, site: Site, leg: Leg, values: tuple[str, str], code: str
) -> None:
    head = (f"Authorization: Bearer {leg.key}", f"Content-Length: {len(PLAIN)}", *values)
    answer = site.door.ask("POST /v1/chat/completions", *head, body=PLAIN)
    assert answer.status == 415
    assert code in answer.text
    assert upstream.requests == []


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON;charset=UTF-8", 'application/json; charset="utf-8"']
)
def test_json_in_any_writing_passes(upstream: Upstream, leg: Leg, kind: str) -> None:
    assert leg.post(PLAIN, content_type=kind).status == 200


@pytest.mark.parametrize("field", ["models", "fallbacks", "MODELS"])
def test_a_key_for_some_models_names_no_others(upstream: Upstream, site: Site, field: str) -> None:
    """Routers ask them if the first one fails."""
    body = b'{"model": "m", "%s": ["secret"]}' % field.encode()
    refused = site.leg(site.key(only_models=["m"])).post(body)
    assert (refused.status, refused.error["code"]) == (403, "model_not_found")
    assert upstream.requests == []
    assert site.leg().post(body).status == 200


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 304])
@pytest.mark.parametrize("path", ["/chat/completions", "/models"])
def test_no_client_is_led_elsewhere(upstream: Upstream, site: Site, status: int, path: str) -> None:
    """It would send what it has to say to somebody else. Nothing is counted, and the address is not shown."""
    key = site.key()
    head = f"HTTP/1.1 {status} Elsewhere\r\nlocation: http://inside.test/v1\r\ncontent-length: 0\r\n\r\n"
    upstream.answers(Answer(raw=[head.encode()]))
    leg = site.leg(key)
    refused = leg.post(PLAIN) if path == "/chat/completions" else leg.send("GET", path)
    assert (refused.status, refused.error["code"]) == (502, "upstream_redirects")
    assert b"inside.test" not in refused.body
    assert "location" not in refused.headers
    wait_for(lambda: site.usage(key)["requests"])
    assert site.usage(key)["answers"] == 0


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("x-gzip", gzip.compress(LEAK)),
        ("br", LEAK),
        ("deflate", zlib.compressobj(wbits=-15).compress(LEAK) + b"\x00"),
        ("gzip", gzip.compress(b"{") + gzip.compress(LEAK)),
        ("gzip", gzip.compress(LEAK)[:-9]),
        ("identity", LEAK.replace(b"sk-", b"\\u0073k\\u002d")),
    ],
    ids=["x-gzip", "br", "raw deflate", "two members", "cut off", "escaped"],
)
def test_an_error_that_hides_the_sites_key(upstream: Upstream, leg: Leg, encoding: str, body: bytes) -> None:
    upstream.answers(Answer(body, 401, [JSON, ("content-encoding", encoding)]))
    refused = leg.post(PLAIN)
    assert (refused.status, refused.error["code"]) == (502, "upstream_broken")


def test_a_long_error_where_the_site_has_no_key(upstream: Upstream, tmp_path: Path) -> None:
    """Nothing is there to be hidden in it."""
    upstream.answers(Answer(b"x" * 2_000_000, 500))
    with running(tmp_path, upstream.url, OPENAI_API_KEY="") as site:
        assert site.leg().post(PLAIN).body == b"x" * 1024 * 1024


def test_no_person_takes_all_places(upstream: Upstream, site: Site) -> None:
    """Not with two keys, nor with one that is written in two ways."""
    first = site.key()
    second = site.console(f"make_key(User.objects.get(pk={first.user}), 'second', ['passthrough'])[1]")
    site.secrets.append(second)
    gate = Gate()
    stream = Answer([b"data: 1\n\n", gate, b"data: [DONE]\n\n"], headers=[EVENTS])
    upstream.script = lambda asked: stream if asked.method == "POST" else Answer(b"{}")
    leg = site.leg(first)
    streams = [begun(site, leg) for _ in range(200)]
    upstream.received(200)
    try:
        for authorization in (f"Bearer {first.text}", f"bearer  {first.text}", f"Bearer {second}"):
            refused = leg.post(PLAIN, authorization=authorization)
            assert (refused.status, refused.error["code"]) == (429, "rate_limit_exceeded")
            assert refused.headers["retry-after"] == "1"
        assert site.leg().send("GET", "/models").status == 200
    finally:
        gate.open()
        for client in streams:
            client.close()
    wait_for(lambda: leg.send("GET", "/models").status == 200)


def test_half_an_answer_is_none_for_an_old_client(upstream: Upstream, site: Site, leg: Leg) -> None:
    """In HTTP/1.0 the end of the connection is the end of the answer: only an error on it tells."""
    gate = Gate()
    upstream.answers(Answer([b"half", gate], headers=[JSON], breaks=True))
    head = ("POST /v1/chat/completions HTTP/1.0", f"Authorization: Bearer {leg.key}", f"Content-Length: {len(PLAIN)}")
    client = socket.create_connection(("127.0.0.1", site.door.port))
    client.sendall("\r\n".join([*head, "Content-Type: application/json", "", ""]).encode() + PLAIN)
    got = b""
    while b"half" not in got:
        got += client.recv(65536)
    gate.open()
    with pytest.raises(ConnectionResetError):
        client.recv(65536)
    client.close()


def test_netrc_is_nobodys_business(upstream: Upstream, tmp_path: Path) -> None:
    """It has passwords for other programs. A server on this machine by another name is asked as any other."""
    (tmp_path / "netrc").write_text("default login nobody password nothing\n")
    url = upstream.url.replace("127.0.0.1", "127.0.0.1.nip.invalid")
    with running(tmp_path, url, NETRC=str(tmp_path / "netrc")) as site:
        assert site.leg().post(PLAIN).error["code"] == "upstream_unreachable"
    assert "does not answer a request under /v1" in (tmp_path / "log").read_text()


def test_nobody_elses_upload_waits_for_a_slow_model(upstream: Upstream, site: Site) -> None:
    """Large bodies are kept until the model server begins to answer, in a room of their own."""
    gate = Gate()
    upstream.script = lambda _: Answer(b"{}", before=gate)
    body = b'{"model": "m", "x": "%s"}' % (b"a" * 4_000_000)
    legs = [site.leg() for _ in range(3)]
    streams = [begun(site, leg, body) for leg in legs for _ in range(4)]
    upstream.received(12)
    try:
        refused = legs[0].post(body)
        assert (refused.status, refused.error["code"]) == (429, "throttled")
        refused = site.leg().post(body)
        assert (refused.status, refused.error["code"]) == (503, "busy")
        login = Leg("page", f"{site.url}/api", site.key(("chat",)).text)
        assert login.send("POST", "/uploads/", b"a" * 4_000_000, content_type="text/plain").status not in (429, 503)
    finally:
        gate.open()
        for client in streams:
            client.close()
    wait_for(lambda: site.leg().post(body).status == 200)


def test_what_the_model_server_has_not_read_is_not_counted(tmp_path: Path) -> None:
    """It takes connections and nothing else. The client leaves."""
    deaf = socket.create_server(("127.0.0.1", 0))
    with deaf, running(tmp_path, f"http://127.0.0.1:{deaf.getsockname()[1]}/v1") as site:
        key = site.key()
        client = begun(site, site.leg(key), b'{"model": "m", "x": "%s"}' % (b"a" * 15_000_000))
        connection, _ = deaf.accept()
        assert connection.recv(4) == b"POST"
        client.close()
        with suppress(ConnectionError):
            while connection.recv(1_000_000):
                pass
        connection.close()
        with begun(site, site.leg(key)):
            wait_for(lambda: site.usage(key)["requests"] == 2)  # so what came before is written, too
            assert site.usage(key)["answers"] == 0


@pytest.mark.parametrize("header", ["if_none_match", "if_modified_since", "range"])
def test_the_list_of_models_comes_whole(upstream: Upstream, leg: Leg, header: str) -> None:
    """A server would answer a condition without a list, and a part of one cannot be looked through."""
    upstream.answers(Answer(b'{"data": []}', headers=[JSON, ("etag", '"1"')]))
    answer = leg.send("GET", "/models", b"", **{header: "x"})
    assert (answer.status, answer.body) == (200, b'{"data": []}')
    assert "etag" not in answer.headers
    assert upstream.received().header(header.replace("_", "-")) is None


@pytest.mark.parametrize(
    ("said", "status"), [(None, 403), ("http", 403), ("http, https", 403), ("https", 200), ("https, http", 200)]
)
def test_no_key_over_http(https: Site, upstream: Upstream, said: str | None, status: int) -> None:
    """Where a proxy handles HTTPS. Of several, the outermost wrote the first."""
    answer = https.leg().send("POST", "/chat/completions", PLAIN, **({"x_forwarded_proto": said} if said else {}))
    assert answer.status == status
    assert len(upstream.requests) == (status == 200)


@pytest.fixture(scope="module")
def https(server: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site behind a proxy that handles HTTPS."""
    with running(tmp_path_factory.mktemp("https"), server.url, AGENTSITE_HTTPS="1", ALLOWED_HOSTS="localhost") as site:
        yield site
