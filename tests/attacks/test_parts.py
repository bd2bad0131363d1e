"""Headers of the parts of a form that take long to read, or cannot be read."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO

import pytest
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.http import HttpRequest, QueryDict
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from django.utils.http import parse_header_parameters
from hypothesis import given
from hypothesis import strategies as st

from agentsite.parts import check
from tests.attacks.doors import Door, site

KIND = "Content-Type: multipart/form-data; boundary=b"
SLOW = {
    "a slow decoder": b"x: a; name*=punycode''" + b"a" * 950,
    "the same in pieces": b"x: a; name*0*=punycode''; name*1*=" + b"a" * 900,
    "the same in quotes": b"x: a; name*=\"Punycode''" + b"a" * 900 + b'"',
    "parameters without an end": b"x: a" + b";" * 960,
    "quotes that do not close": b'x: a; a="' + b";" * 950,
    "quotes that are escaped": b'x: a; a="' + b'\\";' * 315,
    "lines without an end": b"\r\n".join([b"x:;"] * 190),
}
UNREADABLE = {
    "another charset": b"name*=utf-16''a",
    "a decoder that nobody has": b"name*=foo''x",
    "pieces that cannot be put together": b"name*0=z; name*=q",
}
READABLE = {
    'name="input"': "input",
    "name*=utf-8''in%70ut": "input",
    "name*=UTF-8'en'%E2%82%AC": "\u20ac",
    "name*=iso-8859-1''%E9": "\u00e9",
    "name*=''input": "input",
    'name*0="in"; name*1=put': "input",
    'name="a;b*=c"': "a;b*=c",
}


def form(*heads: bytes) -> bytes:
    """A form with parts that have these headers, and no content."""
    return b"".join(b"--b\r\n" + head + b"\r\n\r\n\r\n" for head in heads) + b"--b--\r\n"


def read(body: bytes) -> QueryDict:
    """The fields of a form, as Django reads them."""
    meta = {"CONTENT_TYPE": "multipart/form-data; boundary=b", "CONTENT_LENGTH": str(len(body))}
    return MultiPartParser(meta, BytesIO(body), [MemoryFileUploadHandler(HttpRequest())]).parse()[0]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with site(tmp_path_factory.mktemp("parts")) as door:
        yield door


@pytest.mark.parametrize("named", SLOW)
def test_no_part_takes_long_to_read(named: str) -> None:
    """As many as a form may have. They took 0.7 to 4 s."""
    before = time.process_time()
    with pytest.raises(MultiPartParserError):
        read(form(*[SLOW[named]] * 900))
    assert time.process_time() - before < 0.2


def test_nor_do_those_that_are_let_through() -> None:
    head = b"\r\n".join([b'x: a; a="' + b";" * 5, b"x: a; name*=utf-8''%41" + b";" * 4] * 4)
    check(head)
    before = time.process_time()
    read(form(*[head + b"a" * (1000 - len(head))] * 900))
    assert time.process_time() - before < 2


def test_files_for_no_field_are_not_read_without_end() -> None:
    """Django counts fields and files, but not these: 3 MB of them took seconds."""
    head = b"\r\n".join([b"content-disposition: a; filename=b" + b";" * 20, *[b"x:;;;"] * 6])
    before = time.process_time()
    with pytest.raises(MultiPartParserError):
        read(form(*[head] * 20_000))
    assert time.process_time() - before < 0.5


@pytest.mark.parametrize("named", [*SLOW, *UNREADABLE])
def test_whoever_sends_one_is_told_so(door: Door, named: str) -> None:
    """A stranger who signs in, and a program with a key. What could not be put together was a 500."""
    head = SLOW.get(named) or b"Content-Disposition: form-data; " + UNREADABLE[named]
    body = form(*[head] * 900)
    length = f"Content-Length: {len(body)}"
    page = door.ask("POST /login/", KIND, length, f"Cookie: csrftoken={'a' * 32}", body=body)
    assert page.status == 400
    ann = door.people["ann"]
    refused = door.ask(f"POST {ann.upload}", KIND, length, ann.bearer, body=body)
    assert refused.status == 400
    assert "UTF-8" in json.loads(refused.text)["error"]["message"]


@pytest.mark.parametrize("named", READABLE)
def test_ordinary_names_are_read(named: str) -> None:
    assert list(read(form(f"Content-Disposition: form-data; {named}".encode()))) == [READABLE[named]]


@given(st.lists(st.sampled_from([*"ab*01=;'\"\\ \xff,%:", "name", "utf-8", "foo", "\r\n"]), max_size=25).map("".join))
def test_what_is_let_through_django_reads(head: str) -> None:
    """Whatever it looks like: no error but the one that it passes over."""
    try:
        check(head.encode())
    except MultiPartParserError:
        return
    for line in head.split("\r\n"):
        with suppress(ValueError):
            parse_header_parameters(line)
