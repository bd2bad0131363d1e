"""The model of a request is found as every reader of JSON would find it, or the request is refused."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.passthrough.body import read, with_model
from agents.passthrough.errors import Refused

TEXTS = st.text(st.characters(codec="utf-8"))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)
FIELDS = st.dictionaries(
    TEXTS.filter(lambda name: name.casefold() not in ("model", "stream")) | st.just("stream"), VALUES
)
NAMES = st.text(min_size=1, max_size=200).filter(str.isprintable)
BLANK = st.text(" \t\n\r", max_size=3)


def refusal(body: bytes) -> str:
    """The code with which the body is refused; "" if it is not."""
    try:
        asyncio.run(read(body))
    except Refused as refused:
        return refused.code if refused.status == 400 else str(refused.status)
    return ""


@given(FIELDS, NAMES, NAMES, st.data())
def test_the_model_is_found_and_an_alias_replaces_it_alone(
    fields: dict[str, Any], name: str, other: str, data: st.DataObject
) -> None:
    items = list(fields.items())
    items.insert(data.draw(st.integers(0, len(items))), ("model", name))
    text = json.dumps(dict(items), ensure_ascii=data.draw(st.booleans()), indent=data.draw(st.sampled_from([None, 1])))
    body = f"{data.draw(BLANK)}{text}{data.draw(BLANK)}".encode()
    asked = asyncio.run(read(body))
    assert asked.model == name
    assert with_model(body, asked, {}) == (body, name)
    sent, model = with_model(body, asked, {name: other})
    assert model == other
    assert json.loads(sent) == {**json.loads(body), "model": other}
    assert sent.startswith(body[: asked.start])
    assert sent.endswith(body[asked.end :])


@given(FIELDS, NAMES, st.data())
def test_a_body_that_is_cut_anywhere_is_refused(fields: dict[str, Any], name: str, data: st.DataObject) -> None:
    body = json.dumps({**fields, "model": name}).encode()
    assert refusal(body[: data.draw(st.integers(0, len(body) - 1))])


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "invalid_body"),
        (b"null", "invalid_body"),
        (b'[{"model": "a"}]', "invalid_body"),
        (b"{}", "missing_model"),
        (b'{"a": {"model": "a"}}', "missing_model"),
        (b'{"model": null}', "invalid_model"),
        (b'{"model": ["a"]}', "invalid_model"),
        (b'{"model": ""}', "invalid_model"),
        (b'{"model": "a\\u0000"}', "invalid_model"),
        (b'{"model": "\\ud800"}', "invalid_model"),
        (b'{"model": "%s"}' % (b"a" * 201), "invalid_model"),
        (b'{"model": "a", "model": "b"}', "duplicate_key"),
        (b'{"model": "a", "model": "a"}', "duplicate_key"),
        (b'{"model": "a", "mod\\u0065l": "b"}', "duplicate_key"),
        (b'{"model": "a", "MODEL": "b"}', "duplicate_key"),
        (b'{"model": "a", "stream": true, "\\u017ftream": false}', "duplicate_key"),
        (b'{"model": "a", "stream": true, "stream": true}', "duplicate_key"),
        (b'{"Model": "a"}', "invalid_body"),
        (b'{"model": "a",}', "invalid_body"),
        (b'{"model": "a"} {"model": "b"}', "invalid_body"),
        (b'{"model": "a"}\x00', "invalid_body"),
        (b'\xef\xbb\xbf{"model": "a"}', "invalid_body"),
        ('{"model": "a"}'.encode("utf-16"), "invalid_body"),
        ('{"model": "a"}'.encode("utf-16-be"), "invalid_body"),
        (b"{'model': 'a'}", "invalid_body"),
        (b'{model: "a"}', "invalid_body"),
        (b'{"model": "a", /* "b": 1, */ "c": 1}', "invalid_body"),
        (b'{"a": [/* "]}, "model": "a" */], "model": "b"}', "invalid_body"),
        (b'{"a": [\'"\'], "model": "b"}', "invalid_body"),
        (b'{"a": [1 # "\n], "model": "b"}', "invalid_body"),
        (b'{"model": "a\xff"}', "invalid_body"),
        (b'{"model": "a\nb"}', "invalid_body"),
    ],
)
def test_what_two_readers_could_read_differently_is_refused(body: bytes, code: str) -> None:
    assert refusal(body) == code


@pytest.mark.parametrize(
    "value",
    [b'"' + b"A" * 20_000_000 + b'"', b"[" + b"1," * 2_000_000 + b"1]", b"[" * 300_000 + b"]" * 300_000],
    ids=["one text", "numbers", "brackets"],
)
async def test_everything_else_goes_on_while_a_large_body_is_read(value: bytes) -> None:
    """A loose bound: reading any of them at once would take longer."""
    longest, over = 0.0, False

    async def others() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not over:
            await asyncio.sleep(0)
            longest, last = max(longest, time.perf_counter() - last), time.perf_counter()

    beside = asyncio.create_task(others())
    asked = await read(b'{"x": ' + value + b', "model": "a"}')
    over = True
    await beside
    assert asked.model == "a"
    assert longest < 0.2
