"""Bodies that name no model, or that two readers would read differently: none of them reaches the model server."""

from __future__ import annotations

import pytest

from tests.budget import share
from tests.passthrough import samples
from tests.passthrough.site import Leg, Site
from tests.passthrough.upstream import Answer, Upstream

DEEP = 100_000
REFUSED = {
    "model twice": b'{"model": "m", "model": "m"}',
    "model twice, not next to each other": b'{"model": "cheap", "messages": [], "model": "dear"}',
    "model twice, once with an escape": b'{"model": "cheap", "mod\\u0065l": "dear"}',
    "model twice, both with escapes": b'{"\\u006dodel": "cheap", "mode\\u006C": "dear"}',
    "model in capitals": b'{"model": "cheap", "Model": "dear"}',
    "stream twice": b'{"model": "m", "stream": false, "stream": true}',
    "stream twice, once with an escape": b'{"model": "m", "stream": false, "str\\u0065am": true}',
    "no model": b'{"messages": []}',
    "model further in only": b'{"x": {"model": "m"}}',
    "an empty model": b'{"model": ""}',
    "null": b'{"model": null}',
    "a number": b'{"model": 7}',
    "a list": b'{"model": ["m"]}',
    "an object": b'{"model": {"model": "m"}}',
    "a model with a line break": b'{"model": "m\\n"}',
    "a model with NUL": b'{"model": "m\\u0000"}',
    "half a character": b'{"model": "\\ud800"}',
    "not an object": b'["model", "m"]',
    "a text": b'"model"',
    "nothing": b"",
    "blanks": b"  \n ",
    "cut": b'{"model": "m"',
    "cut in a text": b'{"model": "m',
    "cut in a character": '{"model": "ü'.encode()[:-1],
    "more behind it": b'{"model": "m"} {"model": "x"}',
    "NUL behind it": b'{"model": "m"}\0',
    "a mark of byte order": b'\xef\xbb\xbf{"model": "m"}',
    "UTF-16": '{"model": "m"}'.encode("utf-16"),
    "UTF-32": '{"model": "m"}'.encode("utf-32-le"),
    "Latin-1": '{"model": "ü"}'.encode("latin-1"),
    "NaN": b'{"model": "m", "temperature": NaN}',
    "infinity": b'{"model": "m", "temperature": -Infinity}',
    "a comment": b'{"model": "m" /* , "model": "x" */}',
    "a comment of a line": b'{"model": "m" // x\n}',
    "single quotes": b"{'model': 'm'}",
    "no quotes": b'{model: "m"}',
    "a comma too many": b'{"model": "m",}',
    "a comma too few": b'{"model": "m" "stream": true}',
    "a form": b"model=m&stream=true",
    "a blank that is none": '{"model":\u00a0"m"}'.encode(),
    "brackets without end": b'{"model": "m", "x": ' + b"[" * DEEP,
    "brackets of two kinds": b'{"model": "m", "x": [}]}',
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("path", share(["/chat/completions", "/embeddings"], of=2))
def test_a_body_that_is_refused(upstream: Upstream, leg: Leg, name: str, path: str) -> None:
    """400 in the provider's shape; nothing is sent on, and nothing of the body is repeated."""
    upstream.answers(Answer(samples.completion()))
    answer = leg.post(REFUSED[name], path)
    assert answer.status == 400
    assert answer.error["type"] == "invalid_request_error"
    assert upstream.requests == []
    assert len(answer.body) < 500


@pytest.mark.parametrize("path", ["/chat/completions", "/completions", "/responses", "/embeddings"])
@pytest.mark.parametrize("query", ["model=x", "MODEL=x", "a=1&model", "m%6fdel=x", "a=1;model=x"])
def test_a_model_in_the_address(upstream: Upstream, leg: Leg, path: str, query: str) -> None:
    """It beat the check of the body's in another proxy. No server of ours is asked to choose."""
    answer = leg.post(b'{"model": "m"}', f"{path}?{query}")
    assert (answer.status, answer.error["param"]) == (400, "model")
    assert upstream.requests == []


def test_depth_is_the_servers_business(upstream: Upstream, leg: Leg) -> None:
    """A body far too deep for a parser is passed on: it stops nobody here."""
    body = b'{"model": "m", "x": %s%s}' % (b"[" * DEEP, b"]" * DEEP)
    upstream.answers(Answer(b"{}", 400))
    assert leg.post(body).status == 400
    assert upstream.requests[0].body == body


def test_what_is_refused_is_not_counted_as_an_answer(site: Site, upstream: Upstream) -> None:
    key = site.key()
    for body in (b"{}", b"{", b'{"model": "m", "model": "x"}'):
        assert site.leg(key).post(body).status == 400
    assert site.usage(key)["answers"] == 0


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", path) for path in ("/chat/completions", "/responses", "/embeddings", "/system-prompts/")),
        *(("POST", path) for path in ("/models", "/chat/completions/", "//chat/completions", "/Chat/Completions")),
        *(("POST", path) for path in ("/audio/speech", "/files", "/chat/../completions", "/responses/r1/cancel")),
        *(("DELETE", path) for path in ("/models/m", "/responses/r1")),
        *(("PUT", path) for path in ("/models", "/chat/completions")),
    ],
)
def test_other_addresses_are_not_passed_on(upstream: Upstream, leg: Leg, method: str, path: str) -> None:
    """The list is whole: nothing else of the server can be reached with the site's key."""
    answer = leg.send(method, path, b'{"model": "m"}' if method != "GET" else b"")
    assert answer.status in (403, 404, 405)
    assert upstream.requests == []


@pytest.mark.parametrize(
    "name", ["..", ".", "%2e%2e", "a/../../files", "..%2ffiles", "a%3fx=1", "a%23b", "a%5c..", "a%00b"]
)
def test_no_name_of_a_model_leads_elsewhere(upstream: Upstream, leg: Leg, name: str) -> None:
    """With the site's key, `/models/..%2ffiles` would show the files of its account."""
    upstream.answers(Answer(b"{}"))
    answer = leg.send("GET", f"/models/{name}")
    assert answer.status in (400, 404)
    assert upstream.requests == []


def test_the_error_is_readable_by_the_sdk(upstream: Upstream, leg: Leg) -> None:
    """All four fields, and a message that says what to do."""
    error = leg.post(b'{"model": "m", "model": "x"}').error
    assert (error["code"], error["param"], error["type"]) == ("duplicate_key", "model", "invalid_request_error")
    error = leg.post(b"{}").error
    assert (error["code"], error["param"]) == ("missing_model", "model")
