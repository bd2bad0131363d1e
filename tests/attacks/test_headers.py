"""Headers that nobody can read, or that take long to read, against a running site: with a body and without."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils.http import parse_header_parameters
from hypothesis import given
from hypothesis import strategies as st

from agentsite import headers
from tests.attacks.doors import Door, site

LINE = 15_000
"""Characters of a header that Twisted just takes."""
UNREADABLE = {
    "a decoder that nobody has": "charset*=foo''x",
    "one in another parameter": "a*=foo''x",
    "one that refuses the text": "charset*=idna''%ff",
    "one in pieces": "charset*0=pun; charset*1=ycode",
    "pieces that cannot be put together": "b*0=z; b*=q",
    "a slow decoder": "charset=punycode",
    "another charset": 'CHARSET="UTF-16"',
}
SLOW = {
    "a slow decoder": "charset*=punycode''" + "a" * LINE,
    "quotes that do not close": 'a="' + ";" * LINE,
    "quotes that are escaped": 'a="' + '\\";' * (LINE // 3),
    "parameters without an end": ";" * LINE,
}
UNREADABLE_TYPES = {
    "thousands": ",".join(["a/b"] * 3900),
    "parameters without an end": "a/b" + ";" * LINE,
    "quotes that do not close": 'a/b; a="' + ";" * LINE,
    "a slow decoder": "text/html;charset*=punycode''" + "a" * 900,
    "a decoder that nobody has": "*/*, a/b; q*=foo''x",
    "pieces that cannot be put together": "a/b; b*0=z; b*=q",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("headers")


@pytest.fixture(scope="module")
def door(folder: Path) -> Iterator[Door]:
    with site(folder) as door:
        yield door


def seconds(door: Door) -> float:
    """The time of the processor that the web server has used."""
    fields = Path(f"/proc/{door.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("named", UNREADABLE)
@pytest.mark.parametrize("request_line", ["GET /login/", "POST /login/", "GET /api/conversations/", "GET *"])
@pytest.mark.parametrize("body", [b"", b"a=b1"])
def test_a_charset_that_is_not_read_is_named(
    door: Door, folder: Path, request_line: str, named: str, body: bytes
) -> None:
    """It was a bare 500 and a traceback in the log where there was no body."""
    length = [f"Content-Length: {len(body)}"] if body else []
    refused = door.ask(request_line, f"Content-Type: text/plain; {UNREADABLE[named]}", *length, body=body)
    assert refused.status == 415
    assert refused.headers["Connection"] == "close"
    assert "UTF-8" in refused.text
    assert "Traceback" not in (folder / "log").read_text()


@pytest.mark.parametrize("named", SLOW)
@pytest.mark.parametrize("body", [b"", b"a=b1"])
def test_no_header_of_a_stranger_takes_long_to_read(door: Door, named: str, body: bytes) -> None:
    """Each took 50 to 500 ms, in which no other connection went on."""
    length = [f"Content-Length: {len(body)}"] if body else []
    before = seconds(door)
    for _ in range(20):
        refused = door.ask("GET /login/", f"Content-Type: text/plain; {SLOW[named]}", *length, body=body)
        assert refused.status in (415, 431)
    assert seconds(door) - before < 0.5


@pytest.mark.parametrize("path", ["/api/docs/", "/api/schema/", "/nowhere", "/login/"])
@pytest.mark.parametrize("named", UNREADABLE_TYPES)
def test_no_accept_is_read_that_takes_long_or_cannot_be_read(door: Door, folder: Path, path: str, named: str) -> None:
    """Of who is signed in, one was a bare 500; what thousands of types cost was for others to limit."""
    ann = door.people["ann"]
    refused = door.ask(f"GET {path}", f"Accept: {UNREADABLE_TYPES[named]}", f"Cookie: sessionid={ann.session}")
    assert refused.status == (431 if len(UNREADABLE_TYPES[named]) > headers.MOST else 415)
    assert "Traceback" not in (folder / "log").read_text()


def test_an_accept_that_is_sent_in_many_lines_is_read_as_one(door: Door) -> None:
    assert door.ask("GET /nowhere", *["Accept: text/html;level=1"] * 100).status == 431
    assert door.ask("GET /nowhere", *["Accept: text/html;level=1"] * 5).status == 404


@pytest.mark.parametrize(
    "kinds",
    [
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
        "text/html;q=0.7, */*;q=0.1, application/*;level=1",
        'a/b;c="*"',
        ";",
        "",
    ],
)
def test_an_ordinary_accept_is_read(door: Door, kinds: str) -> None:
    ann = door.people["ann"]
    assert door.ask("GET /login/", f"Accept: {kinds}").status == 200
    assert door.ask("GET /api/docs/", f"Accept: {kinds}", f"Cookie: sessionid={ann.session}").status in (200, 406)


def test_a_socket_is_not_opened_with_such_a_header(door: Door) -> None:
    refused = door.ask(
        "GET /ws/nowhere/", "Upgrade: websocket", "Connection: Upgrade", "Content-Type: text/plain; charset*=foo''x"
    )
    assert refused.status == 415


def test_a_second_request_on_a_connection_is_looked_at_too(door: Door) -> None:
    second = b"GET /login/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain; charset*=foo''x\r\n\r\n"
    with door.open("GET /healthz", body=second) as client:
        said = b""
        while got := client.recv(65536):
            said += got
    assert said.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 415 " in said


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/json; charset=utf-8", 'multipart/form-data; boundary="a;b=c"', "*/*", ""]
)
def test_an_ordinary_header_is_read_without_a_body_too(door: Door, kind: str) -> None:
    assert door.ask("GET /login/", f"Content-Type: {kind}").status == 200


@given(st.lists(st.sampled_from([*"ab*0=;'\"\\ \xff,", "charset", "utf-8", "foo", "%ff"]), max_size=20).map("".join))
def test_what_is_let_through_django_reads(parameters: str) -> None:
    """Whatever it looks like: no error, and no charset but UTF-8. So it is with each type of an Accept."""
    kind = f"text/plain;{parameters}"
    if not headers.refusal(kind):
        assert parse_header_parameters(kind)[1].get("charset", "utf-8").strip().lower() in headers.UTF_8
    if not headers.refusal("", kind):
        for each in kind.split(","):
            parse_header_parameters(each)
