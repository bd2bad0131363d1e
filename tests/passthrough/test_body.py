"""The model of a request is found as every reader of JSON would find it, or the request is refused."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.passthrough.body import read, with_model
from agents.passthrough.errors import Refused
from tests.budget import examples

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


@settings(max_examples=examples(30))
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


@settings(max_examples=examples(30))
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
        (b'{"model": "a", "b": 01}', "invalid_body"),
        (b'{"model": "a", "b": fals}', "invalid_body"),
        (b'{"model": "a", "b": 1.}', "invalid_body"),
        (b'{"a":[},"model":"m"}', "invalid_body"),
        (b'{"a":[{]},"model":"m"}', "invalid_body"),
        (b'{"a": "\r\n--x", "model": "m"}', "invalid_body"),
        (b'{"a": ["\n"], "model": "m"}', "invalid_body"),
        (b'{"a": ["\\\n"], "model": "m"}', "invalid_body"),
        (b'{"a": "%s\r", "model": "m"}' % (b"x" * 100_000), "invalid_body"),
        (b'{"a": [1\x0c], "model": "m"}', "invalid_body"),
        (b'{"\n": 1, "model": "m"}', "invalid_body"),
    ],
)
def test_what_two_readers_could_read_differently_is_refused(body: bytes, code: str) -> None:
    assert refusal(body) == code


async def turns(body: bytes) -> int:
    """How often others have their turn while a body is read. What comes of it is no matter."""
    over = asyncio.Event()

    async def others() -> int:
        for turn in count():
            if over.is_set():
                return turn
            await asyncio.sleep(0)
        raise AssertionError

    beside = asyncio.create_task(others())
    with suppress(Refused):
        await read(body)
    over.set()
    return await beside


MODEL = b'"model": "a"}'


@pytest.mark.parametrize(
    ("body", "least"),
    [
        (b'{"x": "' + b"A" * 6_400_000 + b'", ' + MODEL, 90),
        (b'{"x": [' + b"1," * 3_200_000 + b"1], " + MODEL, 90),
        (b'{"x": ["' + b'A", "' * 1_280_000 + b'"], ' + MODEL, 90),
        (b'{"x": "' + b'\\"' * 3_200_000 + b'", ' + MODEL, 90),
        (b'{"x": [' + b'"%s", ' % (b"A" * 60_000) * 100 + b"1], " + MODEL, 40),
        (b"{" + b'"x": "%s", ' % (b"A" * 60_000) * 100 + MODEL, 40),
        (b"{" + b'"%s": 1, ' % (b"\\u0061" * 10_000) * 100 + MODEL, 40),
        (b"{" + b'"%s": 1, ' % (b"a" * 6) * 998 + MODEL, 1),
        (b'{"x": ' + b"[" * 300_000 + b"]" * 300_000 + b", " + MODEL, 1000),
        (b'{"x": [' + b"[]," * 6_500_000 + b"[]], " + MODEL, 1000),
    ],
    ids=[
        *("one text", "numbers", "texts", "escapes", "longer texts", "fields", "long names", "many fields"),
        *("deep", "brackets"),
    ],
)
async def test_everything_else_goes_on_while_a_large_body_is_read(body: bytes, least: int) -> None:
    """Every 64 KB or every few hundred steps, however they are spread over the body."""
    assert await turns(body) >= least


def test_no_body_is_work_without_end() -> None:
    """Far more fields and brackets than any request has are refused before they are read."""
    assert refusal(b"{" + b'"": 0, ' * 500_000 + MODEL) == "invalid_body"
    lists = [b'"x%d": [%s1], ' % (number, b"[], " * 200_000) for number in range(3)]
    assert refusal(b"{" + b"".join(lists[:1]) + MODEL) == ""
    assert refusal(b"{" + b"".join(lists) + MODEL) == "invalid_body"


@pytest.mark.parametrize("name", [b"x" * 201, b"\\u0061" * 40, b"model" * 100, b"\\x" * 101])
def test_a_long_name_is_another_name(name: bytes) -> None:
    """It is not even decoded."""
    assert refusal(b'{"%s": 1, "model": "a"}' % name) == ""
