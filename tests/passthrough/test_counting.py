"""The tokens of an answer are the server's own count, wherever its pieces are cut; else an estimate."""

from __future__ import annotations

import gzip
import json
import random
import tracemalloc
import zlib
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.passthrough.caller import Tokens
from agents.passthrough.counting import TAIL, Counter

JSON_KIND, STREAM = "application/json", "text/event-stream; charset=utf-8"
CHAT = {"prompt_tokens": 12, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}
RESPONSES = {"input_tokens": 12, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 4}}
COUNTED = Tokens(input_tokens=12, cached_tokens=4, output_tokens=7)


def count(
    pieces: Iterable[bytes], kind: str = JSON_KIND, encoding: str = "", asked: int = 400, *, whole: bool = True
) -> Tokens:
    counter = Counter(asked)
    counter.begin(kind, encoding)
    for piece in pieces:
        counter.feed(piece)
    if whole:
        counter.end()
    return counter.tokens()


def events(*data: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in data) + b"data: [DONE]\n\n"


def text(said: str) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": said}}], "usage": None}


@pytest.mark.parametrize("usage", [CHAT, RESPONSES])
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_the_servers_count(usage: dict[str, Any], encoding: str) -> None:
    body = json.dumps({"said": 'about "usage": {"prompt_tokens": 99}', "usage": usage, "metadata": {}}).encode()
    assert count([gzip.compress(body) if encoding else body], encoding=encoding) == COUNTED


ECHO = {"tools": [{"parameters": {"default": {"usage": {"input_tokens": 1, "output_tokens": 0}}}}]}
"""What a client sent, and an answer repeats."""


@pytest.mark.parametrize("long", [0, TAIL, 3 * TAIL])
@pytest.mark.parametrize("after", [{"usage": None}, {}])
def test_what_the_client_sent_is_no_count(long: int, after: dict[str, Any]) -> None:
    """They leave after it was repeated, before the server has counted."""
    created = {"type": "response.created", "response": {"instructions": "x" * long, **ECHO, **after}}
    begun = b"data: " + json.dumps(created).encode() + b"\n\n"
    counted = count([begun], STREAM)
    assert (counted.estimated, counted.input_tokens) == (True, 100)
    said = b"data: " + json.dumps({"type": "response.output_text.delta", "delta": "word"}).encode() + b"\n\n"
    assert count([begun, said], STREAM) == Tokens(input_tokens=100, output_tokens=1, estimated=True)
    completed = {"type": "response.completed", "response": {**created["response"], "usage": RESPONSES, "metadata": {}}}  # type: ignore[dict-item]
    whole = begun + said + b"event: response.completed\r\ndata:" + json.dumps(completed).encode() + b"\r\n\r\n"
    assert count([whole], STREAM) == COUNTED
    assert count((whole[at : at + 1000] for at in range(0, len(whole), 1000)), STREAM) == COUNTED
    answer = json.dumps({"object": "response", "instructions": "x" * long, **ECHO, **after}).encode()
    assert count([answer]).estimated


def test_of_a_stream_only_whole_events_are_read() -> None:
    body = events({"choices": [], "usage": CHAT})
    assert count([body[: body.index(b"\n") - 1]], STREAM).estimated
    assert count([body[: body.index(b"\n") + 1]], STREAM) == COUNTED


def test_of_embeddings_which_have_only_an_input() -> None:
    body = json.dumps({"data": [0.125] * 50_000, "usage": {"prompt_tokens": 9, "total_tokens": 9}}).encode()
    assert len(body) > TAIL
    assert count([body]) == Tokens(input_tokens=9)


@given(st.data())
def test_of_a_stream_cut_into_any_pieces(data: st.DataObject) -> None:
    """In the middle of a name, a number or a letter, too."""
    body = events(text("Grüße "), text('a "quoted" word'), {"choices": [], "usage": CHAT})
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)))))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert count(pieces, STREAM) == COUNTED


@given(st.data())
def test_a_stream_without_counts_is_estimated(data: st.DataObject) -> None:
    """By the bytes of its texts, not of what is around them."""
    body = events(text("a" * 40), text("b" * 40), {"choices": [{"delta": {"tool_calls": [{"arguments": "c" * 20}]}}]})
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)))))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert count(pieces, STREAM) == Tokens(input_tokens=100, output_tokens=25, estimated=True)


def test_a_request_that_was_never_answered_is_estimated() -> None:
    assert Counter(400).tokens() == Tokens(input_tokens=100, estimated=True)


@pytest.mark.parametrize(
    "usage", [b"null", b"{}", b'{"prompt_tokens": -1}', b'{"prompt_tokens": 1e9}', b'{"prompt_tokens": ', b"[" * 9999]
)
def test_a_count_that_is_none_is_not_believed(usage: bytes) -> None:
    assert count([b'{"choices": [], "usage": ' + usage]).estimated


def test_a_count_that_no_answer_has_is_not_believed() -> None:
    assert count([b'{"usage": {"prompt_tokens": 1%s}}' % (b"0" * 30)]).estimated


def test_an_answer_that_is_not_what_it_says_is_estimated() -> None:
    assert count([b"not compressed"], encoding="gzip").estimated


def test_little_is_kept_of_a_long_answer() -> None:
    """Of one that expands to fifty times its size, too."""
    counter = Counter(1)
    counter.begin(STREAM, "gzip")
    dice = random.Random(1)
    compressed = gzip.compress(events(*(text(f"{dice.getrandbits(800):0200x}" * 50) for _ in range(3000))))
    assert 3000 * 10_000 / len(compressed) > 50
    tracemalloc.start()
    for start in range(0, len(compressed), 1000):
        counter.feed(compressed[start : start + 1000])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counter.tokens().output_tokens == 3000 * 10_000 // 4
    assert peak < 20 * TAIL


def test_an_answer_that_inflates_without_end_is_read_no_further() -> None:
    """A few compressed bytes may be a gigabyte. The rest is estimated."""
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join(packer.compress(bytes(1024 * 1024)) for _ in range(60)) + packer.flush(zlib.Z_FULL_FLUSH)
    bomb += packer.compress(json.dumps({"usage": CHAT}).encode()) + packer.flush()
    counter = Counter(400)
    counter.begin(JSON_KIND, "gzip")
    tracemalloc.start()
    counter.feed(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    counter.feed(bomb)
    counted = counter.tokens()
    assert counted.estimated
    assert counted.output_tokens * 4 < 103 * len(bomb) + 2 * 1024 * 1024
    assert peak < 20 * TAIL


@pytest.mark.parametrize("kind", [JSON_KIND, STREAM])
def test_little_is_kept_of_large_pieces(kind: str) -> None:
    counter = Counter(1)
    counter.begin(kind, "")
    tracemalloc.start()
    for _ in range(20):
        counter.feed(bytes(256 * 1024))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 3 * TAIL


@pytest.mark.parametrize("many", [TAIL // 9 - 1, 20_000])
@pytest.mark.parametrize("kind", [JSON_KIND, STREAM])
def test_few_places_are_looked_at(monkeypatch: pytest.MonkeyPatch, kind: str, many: int) -> None:
    """An answer may be full of what looks like counts."""
    read: list[int] = []
    decode = json.JSONDecoder.raw_decode

    def counting(self: json.JSONDecoder, text: str, idx: int = 0) -> tuple[Any, int]:
        read.append(len(text))
        return decode(self, text, idx)

    monkeypatch.setattr(json.JSONDecoder, "raw_decode", counting)
    end = b'"usage":{}}' if many > TAIL // 9 else b""
    for closed in (b"", b"}" * many):
        assert count([b"data: {" + b'"usage":{' * many + closed + end + b"\n"], kind).estimated
    assert len(read) <= 6
    assert sum(read) <= 3 * TAIL


def test_a_long_last_event_cut_before_its_last_byte() -> None:
    """Its line ends with two bytes, and the second one comes alone."""
    whole = {"type": "response.completed", "response": {"output": "a" * TAIL, "usage": RESPONSES}}
    body = f"data: {json.dumps(whole)}\r\n\r\n".encode()
    for cut in range(len(body) - 5, len(body) + 1):
        assert count([body[:cut], body[cut:]], STREAM) == COUNTED


@pytest.mark.parametrize(
    "after", [b"", b"\n", b"\n\ndata: {}\n\n", b'\n\ndata: {"usage": null}\n\n', b"\n\n: ping\n\n"]
)
def test_the_last_event_with_counts_may_be_followed_by_others(after: bytes) -> None:
    """And its line may have no end."""
    event = b"data: " + json.dumps({"choices": [], "usage": CHAT}).encode()
    assert count([events(text("a"))[:-14] + event + after], STREAM) == COUNTED


def test_a_compressed_answer_in_two_parts_is_estimated() -> None:
    """Only the first is read."""
    first, second = gzip.compress(events(text("a" * 40))), gzip.compress(events({"choices": [], "usage": CHAT}))
    assert count([first + second], STREAM, "gzip").estimated


def test_what_was_echoed_is_no_count_where_an_answer_breaks_off() -> None:
    echo = b'{"tools": [{"default": {"usage": {"prompt_tokens": 1}}}]'
    assert count([echo]).estimated
    assert count([b"data: " + echo], STREAM).estimated


@pytest.mark.parametrize("length", [10, TAIL])
def test_an_answer_that_breaks_off_is_estimated(length: int) -> None:
    """What it had repeated of the request may look like its end."""
    echo = json.dumps({"instructions": "x" * length, "tools": [{"usage": {"prompt_tokens": 1}}]}).encode()
    for at in range(echo.index(b"prompt_tokens"), len(echo) + 1):
        assert count([echo[:at]], whole=False).estimated
